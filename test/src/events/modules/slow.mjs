export default ({ on }) => on('identity.user.deleted', () => new Promise((resolve) => setTimeout(resolve, 600)));
