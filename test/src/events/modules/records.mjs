// Puts what it hears where the test can see it, after a moment, and spoils its own copy.
export default ({ on }) =>
  on('identity.user.deleted', async (event) => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    (globalThis.heardByModule ??= []).push({ ...event });
    event.userId = 'spoiled';
  });
