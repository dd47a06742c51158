import type { TSchema } from '@sinclair/typebox';

/** A schema of the document (JSON Schema 2020-12), as plain JSON. */
export interface Schema {
  [keyword: string]: unknown;
  $ref?: string;
  title?: string;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  minItems?: number;
  examples?: unknown[];
}

/** Schemas on their way into the document: one with a title moves to the components and is referred to. */
export interface Schemas {
  named: Record<string, Schema>;
  of(schema: TSchema): Schema;
}

export function createSchemas(): Schemas {
  const named: Record<string, Schema> = {};

  function tidy(schema: Schema): Schema {
    const inner: Schema = {
      ...schema,
      ...(schema.properties ? { properties: Object.fromEntries(Object.entries(schema.properties).map(([name, member]) => [name, tidy(member)])) } : {}),
      ...(schema.items ? { items: tidy(schema.items) } : {}),
      ...(schema.anyOf ? union(schema.anyOf.map(tidy)) : {}),
    };
    if (inner.anyOf && (inner.enum || inner.type)) delete inner.anyOf;
    const { title } = inner;
    if (title === undefined) return inner;
    if (title in named && JSON.stringify(named[title]) !== JSON.stringify(inner)) throw new Error(`two schemas of the document are called ${title}`);
    named[title] = inner;
    return { $ref: `#/components/schemas/${title}` };
  }

  return {
    named,
    // Through JSON: what TypeBox keeps under symbols is none of the document's business.
    of: (schema) => tidy(JSON.parse(JSON.stringify(schema)) as Schema),
  };
}

/** Words become an enum, and a value or nothing a type of two; any other union stays. */
function union(members: Schema[]): Schema {
  if (members.every((member) => typeof member.const === 'string')) return { type: 'string', enum: members.map((member) => member.const) };
  const [value, nothing] = members;
  const isNullable = members.length === 2 && nothing!.type === 'null' && typeof value!.type === 'string' && !value!.enum && value!.const === undefined;
  return isNullable ? { ...value, type: [value!.type as string, 'null'] } : { anyOf: members };
}

/** Stands where no example was given. */
export const UNTOLD = '…';

const isUntold = (schema: Schema): boolean => exampleOf(schema) === UNTOLD;

/** What a value of a schema looks like, put together from the examples of its members; what may be missing and has none is left out. */
export function exampleOf(schema: TSchema | Schema): unknown {
  const { examples, const: only, enum: words, anyOf, type, properties, required, items, minItems } = schema as Schema;
  if (examples) return examples[0];
  if (only !== undefined) return only;
  if (words) return words[0];
  if (anyOf) return exampleOf(anyOf[0]!);
  if (type === 'object') {
    const shown = Object.entries(properties ?? {}).filter(([name, member]) => required?.includes(name) || !isUntold(member));
    return Object.fromEntries(shown.map(([name, member]) => [name, exampleOf(member)]));
  }
  if (type === 'array') return Array.from({ length: Math.max(1, minItems ?? 0) }, () => exampleOf(items!));
  return { boolean: true, integer: 1, number: 1, null: null }[type as string] ?? UNTOLD;
}
