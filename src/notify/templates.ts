import { readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Eta } from 'eta/core';
import type { Deps } from '../deps.js';
import type { Channel } from '../store/notifications.js';

export type { Channel } from '../store/notifications.js';

export const CHANNELS = ['EMAIL', 'SMS', 'WHATSAPP'] as const satisfies Channel[];

/**
 * Every message, with the values it needs; times are ISO 8601, UTC. `otp` is a code, `token` what a link carries,
 * `link` that link or empty, `expiresAt` the end of either: a message that comes too late is not sent. `name` may be
 * given to any. A critical one must exist on EMAIL; `only` names the channel of one that goes nowhere else.
 */
export const TEMPLATES = {
  account_deletion_requested: { critical: true, values: ['otp', 'expiresAt', 'gracePeriodDays'] },
  account_deleted: { critical: true, values: ['gracePeriodDays', 'restorableUntil'] },
  account_restore_requested: { critical: true, values: ['otp', 'expiresAt', 'restorableUntil'] },
  account_restored: { critical: true, values: [] },
  email_verification_requested: { critical: true, only: 'EMAIL', values: ['token', 'link', 'expiresAt'] },
  account_exists: { critical: true, only: 'EMAIL', values: [] },
  account_restorable: { critical: true, only: 'EMAIL', values: ['restorableUntil'] },
  password_reset_requested: { critical: true, only: 'EMAIL', values: ['token', 'link', 'expiresAt'] },
  password_changed: { critical: true, values: [] },
  mfa_enabled: { critical: true, values: ['at', 'ipAddress', 'recoveryCodes'] },
  mfa_disabled: { critical: true, values: ['at', 'ipAddress', 'recoveryCodes'] },
  mfa_recovery_codes_replaced: { critical: true, values: ['at', 'ipAddress', 'recoveryCodes'] },
  mfa_recovery_code_used: { critical: true, values: ['at', 'ipAddress', 'recoveryCodes'] },
  account_locked: { critical: true, values: ['at', 'ipAddress', 'lockedUntil', 'guessed'] },
  account_provider_linked: { critical: true, values: ['provider'] },
} as const satisfies Record<string, { critical: boolean; only?: Channel; values: string[] }>;

export type TemplateName = keyof typeof TEMPLATES;
export type Values = Record<string, string | number>;
export type TemplateValues<T extends TemplateName = TemplateName> = Record<(typeof TEMPLATES)[T]['values'][number], string | number> & { name?: string };

export interface Rendered {
  /** null on channels that have no subject. */
  subject: string | null;
  text: string;
}

export interface Templates {
  /** The text of a message, or null when no tenant that may stand in has the template. */
  render(tenants: string[], template: string, channel: Channel, values: Values, now: number): Rendered | null;
  has(tenant: string, template: string, channel: Channel): boolean;
  /** Files that are no usable template, with the reason. */
  readonly problems: string[];
}

const FOLDER = fileURLToPath(new URL('../../../templates/', import.meta.url));
const FILE = /^([a-z0-9_]+)\.(EMAIL|SMS|WHATSAPP)\.eta$/;
const TENANT = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** The tenant whose templates come with the project. */
const SHIPPED = 'global';

/** Whether a tenant can have templates: a name that a folder can have and no path. */
export const isTenantName = (tenant: string): boolean => TENANT.test(tenant);

/** Whose templates may serve a message, best first. */
export const standIns = (tenant: string | null, fallback: string): string[] => [...(tenant === null ? [] : [tenant]), fallback, SHIPPED];

/**
 * Reads templates/<tenant>/<template>.<CHANNEL>.eta, all of them and only once: a tenant's name is looked up among
 * what was read and never becomes part of a path. On EMAIL the first line is `Subject: …`.
 */
export function loadTemplates(folder = FOLDER): Templates {
  const compiled = new Map<string, (values: object) => Rendered>();
  const problems: string[] = [];
  for (const { tenant, file } of list(folder, problems)) {
    const [, template, channel] = FILE.exec(file) ?? [];
    try {
      if (template === undefined || channel === undefined || !isTenantName(tenant)) throw new Error('a template is called <tenant>/<template>.<CHANNEL>.eta');
      const render = compile(readFileSync(join(folder, tenant, file), 'utf8'), channel as Channel);
      if (Object.hasOwn(TEMPLATES, template)) render(sample(template as TemplateName));
      compiled.set(keyOf(tenant, template, channel as Channel), render);
    } catch (error) {
      problems.push(`${tenant}/${file}: ${(error as Error).message.split('\n', 1)[0]!}`);
    }
  }
  return {
    problems,
    has: (tenant, template, channel) => compiled.has(keyOf(tenant, template, channel)),
    render(tenants, template, channel, values, now) {
      const found = tenants.map((tenant) => compiled.get(keyOf(tenant, template, channel))).find((one) => one !== undefined);
      return found?.({ ...values, minutesLeft: minutesLeft(values.expiresAt, now), when }) ?? null;
    },
  };
}

/**
 * Says at start what would not arrive: critical templates that the fallback tenant lacks on EMAIL, files that are no
 * template, and mail that has nowhere to go.
 */
export function checkTemplates(needs: Pick<Deps, 'config' | 'log'>, templates: Templates): void {
  const { config, log } = needs;
  const tenant = config.defaultCommsTenantId;
  if (templates.problems.length > 0) log.error({ problems: templates.problems }, 'templates that cannot be used');
  const missing = Object.entries(TEMPLATES).filter(([name, { critical }]) => critical && !templates.has(tenant, name, 'EMAIL'));
  if (missing.length > 0) log.error({ tenant, channel: 'EMAIL', missing: missing.map(([name]) => name) }, 'critical templates are missing');
  if (config.notifyFile === null && config.smtpUrl === null) log.error('mail cannot be sent: neither SMTP_URL nor NOTIFY_FILE is set');
}

const keyOf = (tenant: string, template: string, channel: Channel): string => `${tenant}/${template}.${channel}`;

function list(folder: string, problems: string[]): { tenant: string; file: string }[] {
  try {
    // Hidden folders are no tenants: mounted configuration keeps its versions in some.
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.eta') && !/(^|[\\/])\./.test(path));
    return files.map((path) => path.split(sep)).map(([tenant, ...rest]) => ({ tenant: tenant!, file: rest.join(sep) }));
  } catch (error) {
    problems.push((error as Error).message);
    return [];
  }
}

/** The values that a message always has; a number is a time, too. */
const sample = (template: TemplateName): object => ({ ...Object.fromEntries(TEMPLATES[template].values.map((value) => [value, 1])), minutesLeft: 1, when });

// Every value passes filterFunction, in raw tags too, and templates are compiled before any value is there: what a
// user wrote is put into the text and never read as part of a template. Newlines in templates stay as they are.
const newEngine = (): Eta => new Eta({ autoEscape: false, autoFilter: true, filterFunction: plain, autoTrim: false });

function compile(source: string, channel: Channel): (values: object) => Rendered {
  const eta = newEngine();
  const render = (text: string): ((values: object) => string) => {
    const template = eta.compile(text);
    return (values) => template.call(eta, values).replace(/\s+$/, '');
  };
  const lines = source.replace(/\r\n/g, '\n');
  if (channel !== 'EMAIL') {
    const text = render(lines);
    return (values) => ({ subject: null, text: text(values) });
  }
  // Subject and text are parted before values come in: no value can end the subject.
  const [, head, body] = /^Subject: (.+)\n\n([^]+)$/.exec(lines) ?? [];
  if (head === undefined || body === undefined) throw new Error('a mail starts with a line "Subject: …" and an empty line');
  const subject = render(head);
  const text = render(body);
  return (values) => ({ subject: subject(values), text: text(values) });
}

const MOST_CHARACTERS = 200;

/**
 * A value as it may stand in a text: one line, no control characters, of bounded length; where it turns the direction
 * of writing, it is turned back after it.
 */
function plain(value: unknown): string {
  if (typeof value !== 'string' && typeof value !== 'number') throw new Error('a value that the template uses was not given');
  const line = Array.from(String(value).replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')).slice(0, MOST_CHARACTERS).join('');
  const isolates = line.match(/[\u2066-\u2068]/g)?.length ?? 0;
  const turns = line.match(/[\u202a\u202b\u202d\u202e]/g)?.length ?? 0;
  return line + '\u2069'.repeat(isolates) + '\u202c'.repeat(turns);
}

const minutesLeft = (expiresAt: string | number | undefined, now: number): number | undefined =>
  expiresAt === undefined ? undefined : Math.max(1, Math.ceil((new Date(expiresAt).getTime() - now) / 60_000));

/** A time as people write it: `20 December 2025 at 14:05 UTC`; templates in another language name it. */
const when = (time: string | number, language = 'en-GB'): string =>
  `${new Intl.DateTimeFormat(language, { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' }).format(new Date(time))} UTC`;
