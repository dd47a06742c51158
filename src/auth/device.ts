import Bowser from 'bowser';

/** Browsers write some 300 characters at most. */
const LONGEST = 512;
/** User agents remembered at most. */
const MOST = 1000;

/**
 * Names devices for their owner by User-Agent: "Firefox on Windows". Few user agents make most logins, so what was
 * parsed is remembered.
 * @returns a function that gives the User-Agent itself where it tells neither browser nor system, null where there is none
 */
export function createDeviceLabels(): (userAgent: string) => string | null {
  const known = new Map<string, string | null>();
  return (userAgent) => {
    const text = userAgent.slice(0, LONGEST).trim();
    const before = known.get(text);
    if (before !== undefined) return before;
    const label = labelOf(text);
    known.set(text, label);
    // A Map keeps insertion order: the oldest goes first.
    if (known.size > MOST) known.delete(known.keys().next().value!);
    return label;
  };
}

function labelOf(userAgent: string): string | null {
  if (userAgent === '') return null;
  const { browser, os } = Bowser.parse(userAgent);
  return [browser.name, os.name].filter(Boolean).join(' on ') || userAgent;
}
