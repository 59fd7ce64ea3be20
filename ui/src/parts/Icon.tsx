const SHAPES = {
  draw: "M4 6h16v12H4zM2 4h4v4H2zM18 4h4v4h-4zM2 16h4v4H2zM18 16h4v4h-4z",
  pan: "M12 2v20M2 12h20M12 2l-3 3M12 2l3 3M12 22l-3-3M12 22l3-3M2 12l3-3M2 12l3 3M22 12l-3-3M22 12l-3 3",
  greys: "M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18zM12 3v18M12 7h7.5M12 11h9M12 15h8.4M12 19h5",
};

/** A small drawing for a button that says in words what it does. */
export function Icon({ name }: { name: keyof typeof SHAPES }) {
  return (
    <svg className="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={SHAPES[name]} />
    </svg>
  );
}
