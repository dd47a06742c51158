export default ({ on }) => on('identity.user.pre_deletion_validate', ({ addBlockingReason }) => addBlockingReason('stock'));
