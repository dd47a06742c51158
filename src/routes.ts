import { deleteRequest } from './account/delete-request.js';
import { deleteAccount } from './account/deletion.js';
import { exportAccount } from './account/export.js';
import { restoreRequest } from './account/restore-request.js';
import { restore } from './account/restore.js';
import { login, type LoginNeeds } from './auth/login.js';
import { logout } from './auth/logout.js';
import { verifyLogin } from './auth/mfa.js';
import { profile } from './auth/profile.js';
import { refresh, type RefreshNeeds } from './auth/refresh.js';
import type { Deps } from './deps.js';
import { row, type Row } from './http/endpoint.js';

export type RouteNeeds = Deps & LoginNeeds & RefreshNeeds;

/** The whole public API: who may call what, what guards it, what does the work. */
export const ROUTES: Row<RouteNeeds>[] = [
  //   method    path                                  who       csrf      limit              delivers   endpoint
  row('post',   '/api/auth/login',                    'anyone', 'login',  'login-ip',        'tokens',  login),
  row('post',   '/api/auth/mfa/verify-login',         'anyone', 'login',  'login-ip',        'tokens',  verifyLogin),
  row('post',   '/api/auth/refresh',                  'anyone', 'cookie', 'refresh-ip',      'tokens',  refresh),
  row('get',    '/api/auth/profile',                  'user',   'safe',   null,              '-',       profile),
  row('post',   '/api/auth/logout',                   'user',   'cookie', null,              '-',       logout),
  ...['/api/auth/account', '/auth/account'].flatMap((account) => [
    row('post',   `${account}/delete-request`,        'user',   'cookie', 'delete-request',  '-',       deleteRequest),
    row('delete',  account,                           'user',   'cookie', 'delete',          '-',       deleteAccount),
    row('post',   `${account}/restore-request`,       'anyone', 'cookie', 'restore-request', '-',       restoreRequest),
    row('post',   `${account}/restore`,               'anyone', 'cookie', 'restore',         '-',       restore),
    row('get',    `${account}/export`,                'user',   'safe',   'export',          '-',       exportAccount),
  ]),
];
