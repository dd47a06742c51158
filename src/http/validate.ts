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

/** Compiles a schema once; the function returned says whether a value fits. */
export function matcher(schema: TSchema): (value: unknown) => boolean {
  const check = ajv.compile(schema);
  return (value) => check(value);
}

function fault({ keyword, instancePath, params, message }: ErrorObject): { path: string; message: string } {
  const { missingProperty, additionalProperty, allowedValues } = params as { missingProperty: string; additionalProperty: string; allowedValues: unknown[] };
  if (keyword === 'required') return { path: `${instancePath}/${missingProperty}`, message: 'is required' };
  if (keyword === 'additionalProperties') return { path: `${instancePath}/${additionalProperty}`, message: 'is not a known member' };
  if (keyword === 'enum') return { path: instancePath, message: `must be one of ${allowedValues.join(', ')}` };
  return { path: instancePath, message: message ?? 'is not valid' };
}
