export interface Patch {
  x1: number;
  y1: number;
  x2: number;
  y2: number;
}

interface Props {
  address: string;
  /** Side length of the square picture, in the units of `patch`. */
  pictureSide: number;
  patch: Patch | null;
  /** Show the whole film instead of the surroundings of the patch. */
  showWhole?: boolean;
  label: string;
}

/** A training film with an outline around the patch nearest to a prototype. */
export function PatchPicture({ address, pictureSide, patch, showWhole: showWhole = false, label }: Props) {
  const view =
    showWhole || patch === null ? { x: 0, y: 0, size: pictureSide } : cropAroundPatch(patch, pictureSide);
  const line = view.size / 60;
  return (
    <svg
      className="patch-picture"
      viewBox={`${view.x} ${view.y} ${view.size} ${view.size}`}
      role="img"
      aria-label={label}
    >
      <image href={address} x={0} y={0} width={pictureSide} height={pictureSide} preserveAspectRatio="none" />
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

/** A square around the patch, four times as wide and inside the picture, so that the anatomy can be recognised. */
export function cropAroundPatch(patch: Patch, side: number): { x: number; y: number; size: number } {
  const size = Math.min(side, 4 * Math.max(patch.x2 - patch.x1, patch.y2 - patch.y1));
  const within = (middle: number) => Math.min(Math.max(middle - size / 2, 0), side - size);
  return { x: within((patch.x1 + patch.x2) / 2), y: within((patch.y1 + patch.y2) / 2), size };
}
