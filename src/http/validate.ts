import type { TSchema } from '@sinclair/typebox';
import { Ajv, type ErrorObject } from 'ajv';
import { ApiError } from '../errors.js';

// Formats and defaults are not used: a schema only says yes or no, and unknown members pass.
const ajv = new Ajv({ allErrors: true, strict: true, ownProperties: true, coerceTypes: false });

/**
 * Compiles a schema once; the function returned checks a value.
 * @throws ApiError INVALID_REQUEST with one `{path, message}` per fault, from the function returned
 */
export function validator(schema: TSchema): (value: unknown) => void {
  const check = ajv.compile(schema);
  return (value) => {
    if (check(value)) return;
    throw new ApiError('INVALID_REQUEST', { errors: (check.errors ?? []).map(fault) });
  };
}

function fault(error: ErrorObject): { path: string; message: string } {
  const missing = error.keyword === 'required' ? `/${(error.params as { missingProperty: string }).missingProperty}` : '';
  return { path: `${error.instancePath}${missing}`, message: missing === '' ? (error.message ?? 'is not valid') : 'is required' };
}
