/** Seeded random numbers for property tests. */
export interface RandomSource {
  /** A number from `low` up to `high`. */
  between: (low: number, high: number) => number;
  /** One of the given values. */
  oneOf: <T>(some: readonly [T, ...T[]]) => T;
}

/** Mulberry32. */
export function seeded(seed: number): RandomSource {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    between: (low, high) => low + next() * (high - low),
    oneOf: (some) => some[Math.floor(next() * some.length)] ?? some[0],
  };
}

/** Check a property on many random cases, the same in every run. */
export function forManyCases(law: (random: RandomSource, number: number) => void, times = 200): void {
  for (let number = 0; number < times; number++) law(seeded(number), number);
}
