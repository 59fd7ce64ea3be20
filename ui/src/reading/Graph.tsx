import type { Attention, ConceptSeen, Explanation } from "../api/types";
import { share } from "../parts/format";
import { useStore } from "../parts/store";
import { settings } from "../settings/settings";
import { useWords } from "../words/words";
import { colourAt } from "./palette";
import { positionOf, useSitting } from "./sitting";

const SIDE = 220;
const RING = 74;
const FAINTEST = 0.02;

interface Node {
  seen: ConceptSeen;
  x: number;
  y: number;
}

/** Who listened to whom on this film: an arrow from the speaker to the listener, thicker for more attention. */
export function Graph({ explanation }: { explanation: Explanation }) {
  const words = useWords().reading;
  const liking = useStore(settings);
  const { attention } = explanation;
  const nodes = placed(explanation);
  const title = (name: string) => nodes.get(name)?.seen.title ?? name;
  const heard = (attention ?? []).filter((one) => (one.weight ?? 0) >= FAINTEST);
  const sentence = (one: Attention) =>
    words.graphTold(
      title(one.listener),
      one.listener === one.speaker ? words.itself : title(one.speaker),
      share(one.weight ?? 0, liking),
    );
  return (
    <section className="block" aria-labelledby="graph">
      <h2 id="graph">{words.graph}</h2>
      {!attention && <p className="quiet">{words.noGraph}</p>}
      {attention && (
        <>
          <svg className="graph" viewBox={`0 0 ${SIDE * 1.6} ${SIDE}`} aria-hidden="true">
            <defs>
              <marker
                id="tip"
                viewBox="0 0 8 8"
                refX="7"
                refY="4"
                markerWidth="9"
                markerHeight="9"
                markerUnits="userSpaceOnUse"
                orient="auto"
              >
                <path d="M0 0 8 4 0 8z" className="tip" />
              </marker>
            </defs>
            {heard.map((one) => (
              <Edge key={`${one.listener} ${one.speaker}`} one={one} nodes={nodes} told={sentence(one)} />
            ))}
            {[...nodes.values()].map((node) => (
              <Knot key={node.seen.name} node={node} />
            ))}
          </svg>
          <ul className="hidden">
            {heard.map((one) => (
              <li key={`${one.listener} ${one.speaker}`}>{sentence(one)}</li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

function placed(explanation: Explanation): Map<string, Node> {
  const heard = new Set((explanation.attention ?? []).flatMap((one) => [one.listener, one.speaker]));
  // By name, so that a finding keeps its place while its strength changes.
  const shown = explanation.concepts
    .filter((one) => heard.has(one.name))
    .sort((a, b) => a.name.localeCompare(b.name));
  return new Map(
    shown.map((seen, place) => {
      const turn = (2 * Math.PI * place) / shown.length - Math.PI / 2;
      return [
        seen.name,
        { seen, x: SIDE * 0.8 + RING * 1.25 * Math.cos(turn), y: SIDE / 2 + RING * Math.sin(turn) },
      ];
    }),
  );
}

function radius({ seen }: Node): number {
  return 8 + 8 * Math.min(Math.max(seen.strength ?? 0, 0), 1);
}

function Edge({ one, nodes, told }: { one: Attention; nodes: Map<string, Node>; told: string }) {
  const [from, to] = [nodes.get(one.speaker), nodes.get(one.listener)];
  if (!from || !to) return null;
  const weight = one.weight ?? 0;
  return (
    <path
      d={from === to ? loop(from) : arrow(from, to)}
      className="edge"
      strokeWidth={0.8 + 5 * weight}
      markerEnd="url(#tip)"
    >
      <title>{told}</title>
    </path>
  );
}

/** A little bent, so that two that listen to each other have two arrows. */
function arrow(from: Node, to: Node): string {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const far = Math.hypot(dx, dy) || 1;
  const [ux, uy] = [dx / far, dy / far];
  const [start, end] = [radius(from) + 2, far - radius(to) - 4];
  const bend = { x: from.x + dx / 2 - uy * far * 0.14, y: from.y + dy / 2 + ux * far * 0.14 };
  const at = (along: number) => `${from.x + ux * along} ${from.y + uy * along}`;
  return `M${at(start)} Q${bend.x} ${bend.y} ${at(end)}`;
}

function loop(node: Node): string {
  const size = radius(node);
  const out = node.x >= SIDE * 0.8 ? 1 : -1;
  const edge = node.x + out * size * 0.8;
  return `M${edge} ${node.y - size * 0.6} C${edge + out * 26} ${node.y - 26} ${edge + out * 26} ${node.y + 26} ${edge + out * 4} ${node.y + size * 0.75}`;
}

function Knot({ node }: { node: Node }) {
  const { reading } = useSitting();
  const below = node.y >= SIDE / 2 - 1;
  const size = radius(node);
  return (
    <g className={node.seen.rejected ? "knot gone" : "knot"}>
      <circle cx={node.x} cy={node.y} r={size} fill={colourAt(positionOf(reading, node.seen.name))} />
      <text x={node.x} y={below ? node.y + size + 15 : node.y - size - 6} textAnchor="middle">
        {short(node.seen.title)}
      </text>
    </g>
  );
}

function short(title: string): string {
  return title.length > 22 ? `${title.slice(0, 20)}…` : title;
}
