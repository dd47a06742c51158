import { Type, type SchemaOptions, type TString } from '@sinclair/typebox';

/** Members of replies that many endpoints share. Requests state their own limits. */
export const Email = Type.String({ format: 'email', examples: ['ada@example.org'] });
export const Id = Type.String({ format: 'uuid', examples: ['0198f4a2-7c1e-7b55-9d0e-3f6f0c1d2e4a'] });
/** A moment, ISO 8601 in UTC. */
export const time = (options: SchemaOptions = {}): TString => Type.String({ format: 'date-time', examples: ['2026-03-01T09:30:00.000Z'], ...options });
/** A span in whole seconds. */
export const seconds = (description: string, example: number) => Type.Integer({ minimum: 0, description, examples: [example] });
export const OrNull = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) => Type.Union([schema, Type.Null()]);
