export default ({ on }) =>
  on('identity.user.pre_deletion_validate', async ({ userId, email, addBlockingReason }) => {
    addBlockingReason('bookings', `active booking of ${userId}`);
    await null;
    addBlockingReason('billing', `open invoice of ${email}`);
  });
