export default ({ on }) => {
  on('identity.user.pre_deletion_validate', ({ addBlockingReason }) => {
    addBlockingReason('stock', 'goods on the way');
    throw new Error('the stock cannot be read');
  });
  on('identity.user.deleted', () => {
    throw new Error('no clean-up today');
  });
};
