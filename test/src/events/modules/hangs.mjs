export default ({ on }) =>
  on('identity.user.pre_deletion_validate', async ({ addBlockingReason }) => {
    await new Promise((resolve) => setTimeout(resolve, 2300));
    addBlockingReason('late', 'too late');
  });
