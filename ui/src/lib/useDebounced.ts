import { useEffect, useState } from "react";

/** The value once it has not changed for `milliseconds`. */
export function useDebounced<T>(value: T, milliseconds: number): T {
  const [debounced, setSettled] = useState(value);
  useEffect(() => {
    const waiting = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(waiting);
  }, [value, milliseconds]);
  return debounced;
}
