export default ({ on }) => on('identity.user.renamed', () => undefined);
