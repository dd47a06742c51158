/** JSON columns come as text from MariaDB and parsed from MySQL. */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the caller knows what the column holds
export const parsed = <T>(value: unknown): T | null => (typeof value === 'string' ? (JSON.parse(value) as T) : (value as T | null));

/** An array of such a column; NULL, which an aggregate over no rows gives, is the empty one. */
export const list = <T>(value: unknown): T[] => parsed<T[]>(value) ?? [];
