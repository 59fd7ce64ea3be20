export interface Patch {
  x1: number;
  y1: number;
  x2: number;
  y2: number;
}

interface Props {
  address: string;
  /** Side of the picture, in the pixels in which the patch is told. */
  side: number;
  patch: Patch | null;
  /** Show what surrounds the patch only, or the whole film. */
  whole?: boolean;
  label: string;
}

/** A training film with the patch outlined that a prototype is nearest to. */
export function PatchPicture({ address, side, patch, whole = false, label }: Props) {
  const view = whole || patch === null ? { x: 0, y: 0, size: side } : around(patch, side);
  const line = view.size / 60;
  return (
    <svg
      className="patch-picture"
      viewBox={`${view.x} ${view.y} ${view.size} ${view.size}`}
      role="img"
      aria-label={label}
    >
      <image href={address} x={0} y={0} width={side} height={side} preserveAspectRatio="none" />
      {patch && (
        <rect
          x={patch.x1}
          y={patch.y1}
          width={patch.x2 - patch.x1}
          height={patch.y2 - patch.y1}
          className="patch-outline"
          strokeWidth={line}
        />
      )}
    </svg>
  );
}

/** A square around the patch, four times as wide and inside the picture: with less around it, nobody knows where it is. */
export function around(patch: Patch, side: number): { x: number; y: number; size: number } {
  const size = Math.min(side, 4 * Math.max(patch.x2 - patch.x1, patch.y2 - patch.y1));
  const within = (middle: number) => Math.min(Math.max(middle - size / 2, 0), side - size);
  return { x: within((patch.x1 + patch.x2) / 2), y: within((patch.y1 + patch.y2) / 2), size };
}
