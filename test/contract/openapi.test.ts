import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import t from 'tap';
import { createDocument, type Document, type Media } from '../../src/openapi/document.js';
import { UNTOLD } from '../../src/openapi/schemas.js';
import { PUBLIC_ROUTES } from '../../src/routes.js';
import { FORMATS } from '../support/formats.js';

const document = createDocument(PUBLIC_ROUTES);
const operations = Object.entries(document.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ name: `${method} ${path}`, path, operation })));

t.test('the document is valid OpenAPI 3.1', async (t) => {
  const judge = async (candidate: Document) => {
    const validator = new Validator();
    const { valid, errors } = await validator.validate(JSON.parse(JSON.stringify(candidate)) as Record<string, unknown>);
    return { valid, version: validator.version, errors };
  };
  t.match(await judge(document), { valid: true, version: '3.1', errors: undefined });
  t.match(await judge({ ...document, info: {} }), { valid: false });
});

t.test('it has every row of the public table, each under an id of its own', (t) => {
  t.same(operations.map(({ name }) => name).sort(), PUBLIC_ROUTES.map(({ method, path }) => `${method} ${path}`).sort());
  t.equal(new Set(operations.map(({ operation }) => operation.operationId)).size, operations.length);
  t.end();
});

t.test('every parameter of a path is declared where it stands', (t) => {
  for (const { name, path, operation } of operations) {
    const named = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
    t.same((operation.parameters ?? []).filter((parameter) => parameter.in === 'path').map((parameter) => parameter.name), named, name);
  }
  t.end();
});

t.test('every example of a request or a reply fits its schema, and none is made of dots', (t) => {
  const ajv = new Ajv2020({ strict: false, formats: FORMATS });
  ajv.addSchema(document, 'document');
  const refer = (node: object): object => JSON.parse(JSON.stringify(node).replaceAll('"#/components', '"document#/components')) as object;
  let count = 0;
  const check = (name: string, { schema, example, examples = {} }: Media): void => {
    const values = example === undefined ? Object.values(examples).map((one) => valueOf(one)) : [example];
    t.ok(values.length > 0, `${name} has an example`);
    for (const value of values) {
      count += 1;
      t.ok(ajv.validate(refer(schema), value), `${name}: ${JSON.stringify(value)}: ${ajv.errorsText()}`);
      t.notOk(JSON.stringify(value).includes(JSON.stringify(UNTOLD)), `${name} is told by an example: ${JSON.stringify(value)}`);
    }
  };
  const valueOf = (example: unknown): unknown => {
    const { $ref, value } = example as { $ref?: string; value: unknown };
    return $ref === undefined ? value : document.components.examples[$ref.split('/').at(-1)!]!.value;
  };
  for (const { name, operation } of operations) {
    for (const media of Object.values(operation.requestBody?.content ?? {})) check(name, media);
    for (const [status, response] of Object.entries(operation.responses)) {
      if (!('$ref' in response)) for (const media of Object.values(response.content ?? {})) check(`${name} ${status}`, media);
    }
  }
  for (const [name, { content }] of Object.entries(document.components.responses)) for (const media of Object.values(content ?? {})) check(name, media);
  t.ok(count > 30, `${count} examples`);
  t.end();
});

t.test('two schemas of one name do not pass for one', (t) => {
  const [first, second, ...rest] = PUBLIC_ROUTES;
  const other = { ...second!, endpoint: { ...second!.endpoint, body: { ...second!.endpoint.body!, title: 'Tokens' } } };
  t.throws(() => createDocument([first!, other, ...rest] as typeof PUBLIC_ROUTES), /two schemas of the document are called Tokens/);
  t.end();
});
