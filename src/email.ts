/** E-mail addresses are lower-cased in ASCII only: Unicode folding maps K (U+212A) to k, and so one account to another. */
export const normaliseEmail = (email: string): string => email.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

/** Whether a new account may have this address: something on both sides of one @, without blanks, control characters or half characters. */
// eslint-disable-next-line no-control-regex -- control characters are what must not get in
export const isEmail = (text: string): boolean => text.length <= 254 && /^[^\s@\u0000-\u001f\u007f<>,;:"()[\]\\]+@[^\s@\u0000-\u001f\u007f<>,;:"()[\]\\]+$/.test(text) && text === text.normalize('NFC') && text.isWellFormed();
