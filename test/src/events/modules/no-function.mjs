export default { on: 'identity.user.deleted' };
