import { deleteRequest } from './account/delete-request.js';
import { deleteAccount } from './account/deletion.js';
import { resendVerification, verifyEmail } from './account/email-verification.js';
import { exportAccount } from './account/export.js';
import { forgotPassword, resetPassword, type PasswordResetNeeds } from './account/password-reset.js';
import { register } from './account/register.js';
import { restoreRequest } from './account/restore-request.js';
import { restore } from './account/restore.js';
import { csrfToken } from './auth/csrf-token.js';
import { factors } from './auth/factor-list.js';
import { jwks } from './auth/jwks.js';
import { login, type LoginNeeds } from './auth/login.js';
import { logout } from './auth/logout.js';
import { verifyLogin } from './auth/mfa.js';
import { changePassword, type PasswordChangeNeeds } from './auth/password-change.js';
import { oauthCallback, oauthStart, type OAuthNeeds } from './auth/oauth/endpoints.js';
import { profile } from './auth/profile.js';
import { renewRecoveryCodes } from './auth/recovery-codes.js';
import { refresh, type RefreshNeeds } from './auth/refresh.js';
import { endOtherSessions, endSession, sessions } from './auth/sessions.js';
import { confirmTotp, enrolTotp, removeTotp } from './auth/totp.js';
import { securityEvents } from './auth/security-events.js';
import type { Deps } from './deps.js';
import { row, type Row } from './http/endpoint.js';
import { openapi, type ApiDocument } from './openapi/endpoint.js';
import type { Readiness } from './ops/health.js';
import { HEALTH_ROUTES } from './ops/routes.js';

export type RouteNeeds = Deps & LoginNeeds & RefreshNeeds & PasswordChangeNeeds & PasswordResetNeeds & OAuthNeeds & { apiDocument: ApiDocument };

/** The whole public API: who may call what, what guards it, what does the work. */
export const ROUTES: Row<RouteNeeds>[] = [
  //   method    path                                  who       csrf      limit              delivers   endpoint
  row('post',   '/api/auth/login',                    'anyone', 'login',  'login-ip',        'tokens',  login),
  row('post',   '/api/auth/mfa/verify-login',         'anyone', 'login',  'login-ip',        'tokens',  verifyLogin),
  row('get',    '/api/auth/oauth/{provider}',         'anyone', 'safe',   'oauth',           '-',       oauthStart),
  row('get',    '/api/auth/oauth/{provider}/callback', 'anyone', 'safe',  null,              '-',       oauthCallback),
  row('post',   '/api/auth/refresh',                  'anyone', 'cookie', 'refresh-ip',      'tokens',  refresh),
  row('get',    '/api/auth/profile',                  'user',   'safe',   null,              '-',       profile),
  row('get',    '/api/auth/security-events',          'user',   'safe',   null,              '-',       securityEvents),
  row('post',   '/api/auth/logout',                   'user',   'cookie', null,              '-',       logout),
  row('post',   '/api/auth/register',                 'anyone', 'cookie', 'register',        '-',       register),
  row('post',   '/api/auth/email/verify',             'anyone', 'cookie', 'email-verify',    '-',       verifyEmail),
  row('post',   '/api/auth/email/resend',             'anyone', 'cookie', 'email-resend',    '-',       resendVerification),
  row('post',   '/api/auth/password/forgot',          'anyone', 'cookie', 'password-forgot', '-',       forgotPassword),
  row('post',   '/api/auth/password/reset',           'anyone', 'cookie', 'password-reset',  '-',       resetPassword),
  row('post',   '/api/auth/password/change',          'user',   'cookie', 'password-change', '-',       changePassword),
  row('get',    '/api/auth/csrf',                     'user',   'safe',   null,              '-',       csrfToken),
  row('get',    '/api/auth/sessions',                 'user',   'safe',   null,              '-',       sessions),
  row('delete', '/api/auth/sessions/{id}',            'user',   'cookie', null,              '-',       endSession),
  row('delete', '/api/auth/sessions',                 'user',   'cookie', null,              '-',       endOtherSessions),
  row('get',    '/api/auth/mfa',                      'user',   'safe',   null,              '-',       factors),
  row('post',   '/api/auth/mfa/totp',                 'user',   'cookie', 'mfa',             '-',       enrolTotp),
  row('post',   '/api/auth/mfa/totp/confirm',         'user',   'cookie', 'mfa',             '-',       confirmTotp),
  row('delete', '/api/auth/mfa/totp',                 'user',   'cookie', 'mfa',             '-',       removeTotp),
  row('post',   '/api/auth/mfa/recovery-codes',       'user',   'cookie', 'mfa',             '-',       renewRecoveryCodes),
  row('get',    '/.well-known/jwks.json',             'anyone', 'safe',   null,              '-',       jwks),
  ...['/api/auth/account', '/auth/account'].flatMap((account) => [
    row('post',   `${account}/delete-request`,        'user',   'cookie', 'delete-request',  '-',       deleteRequest),
    row('delete',  account,                           'user',   'cookie', 'delete',          '-',       deleteAccount),
    row('post',   `${account}/restore-request`,       'anyone', 'cookie', 'restore-request', '-',       restoreRequest),
    row('post',   `${account}/restore`,               'anyone', 'cookie', 'restore',         '-',       restore),
    row('get',    `${account}/export`,                'user',   'safe',   'export',          '-',       exportAccount),
  ]),
  row('get',    '/openapi.json',                      'anyone', 'safe',   null,              '-',       openapi),
];

/** What the public listener answers, and what the document says. */
export const PUBLIC_ROUTES: Row<RouteNeeds & { readiness: Readiness }>[] = [...ROUTES, ...HEALTH_ROUTES];
