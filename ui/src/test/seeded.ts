/** Chance that is the same in every run. */
export interface Chance {
  /** Anywhere from `low` up to `high`. */
  between: (low: number, high: number) => number;
  /** One of them. */
  of: <T>(some: readonly [T, ...T[]]) => T;
}

/** Mulberry32: small, and even enough to find what an example misses. */
export function seeded(seed: number): Chance {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    between: (low, high) => low + next() * (high - low),
    of: (some) => some[Math.floor(next() * some.length)] ?? some[0],
  };
}

/** Try a law on many cases that chance makes; what fails tells which one it was. */
export function often(law: (chance: Chance, number: number) => void, times = 200): void {
  for (let number = 0; number < times; number++) law(seeded(number), number);
}
