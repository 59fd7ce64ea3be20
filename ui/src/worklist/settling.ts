import { useEffect, useState } from "react";

/** The value once nobody has changed it for a while. */
export function useSettled<T>(value: T, milliseconds: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const waiting = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(waiting);
  }, [value, milliseconds]);
  return settled;
}

let scrolled = 0;

/** Coming back from a film finds the list where it was left. */
export function useKeptScroll(filled: boolean): void {
  useEffect(() => {
    const place = document.getElementById("content");
    if (!filled || !place) return;
    place.scrollTop = scrolled;
    const note = () => {
      scrolled = place.scrollTop;
    };
    place.addEventListener("scroll", note, { passive: true });
    return () => place.removeEventListener("scroll", note);
  }, [filled]);
}
