export default async ({ on }) => on('identity.user.pre_deletion_validate', () => undefined);
