/** Where a Redis Cluster is asked first for all its nodes. */
export interface ClusterAddress {
  nodes: { host: string; port: number }[];
  tls: boolean;
  username?: string;
  password?: string;
}

const SHAPE = /^redis(?<tls>s?)\+cluster:\/\/(?:(?<user>[^:@/]*)(?::(?<password>[^@/]*))?@)?(?<nodes>[^@/?#]+)(?:\/0?)?$/;
const PORT = 6379;

/**
 * Reads `redis+cluster://user:password@host:port,host:port`, or `rediss+cluster://…` for TLS. A cluster has database 0 alone.
 * @returns null when the text is anything else
 */
export function clusterAddress(text: string): ClusterAddress | null {
  const { tls, user, password, nodes } = SHAPE.exec(text)?.groups ?? {};
  const given = (nodes ?? '').split(',').map((node) => `redis://${node}`);
  if (!given.every((node) => URL.canParse(node) && new URL(node).hostname !== '')) return null;
  try {
    return {
      nodes: given.map((node) => new URL(node)).map(({ hostname, port }) => ({ host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port || PORT) })),
      tls: tls === 's',
      ...(user ? { username: decodeURIComponent(user) } : {}),
      ...(password ? { password: decodeURIComponent(password) } : {}),
    };
  } catch {
    return null;
  }
}
