import type { AttentionEdge, ConceptExplanation, Explanation } from "../api/types";
import { useWords } from "../i18n/words";
import { formatProbability } from "../lib/format";
import { useStore } from "../lib/store";
import { settings } from "../settings/settings";
import { conceptColour } from "./conceptDisplay";
import { useReadingContext } from "./ReadingContext";

const SIDE = 220;
const RING_RADIUS = 74;
const SMALLEST_WEIGHT = 0.02;

interface Node {
  finding: ConceptExplanation;
  x: number;
  y: number;
}

/** Graph attention on this film: an arrow from speaker to listener, thicker for a larger weight. */
export function AttentionGraph({ explanation }: { explanation: Explanation }) {
  const words = useWords().reading;
  const preferences = useStore(settings);
  const { attention } = explanation;
  const nodes = layOutNodes(explanation);
  const title = (name: string) => nodes.get(name)?.finding.title ?? name;
  const visibleEdges = (attention ?? []).filter((edge) => (edge.weight ?? 0) >= SMALLEST_WEIGHT);
  const sentence = (edge: AttentionEdge) =>
    words.attentionSentence(
      title(edge.listener),
      edge.listener === edge.speaker ? words.itself : title(edge.speaker),
      formatProbability(edge.weight ?? 0, preferences),
    );
  return (
    <section className="block" aria-labelledby="graph">
      <h2 id="graph">{words.attentionTitle}</h2>
      {!attention && <p className="muted">{words.noAttention}</p>}
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
            {visibleEdges.map((edge) => (
              <Edge
                key={`${edge.listener} ${edge.speaker}`}
                edge={edge}
                nodes={nodes}
                label={sentence(edge)}
              />
            ))}
            {[...nodes.values()].map((node) => (
              <ConceptNode key={node.finding.name} node={node} />
            ))}
          </svg>
          <ul className="visually-hidden">
            {visibleEdges.map((edge) => (
              <li key={`${edge.listener} ${edge.speaker}`}>{sentence(edge)}</li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

function layOutNodes(explanation: Explanation): Map<string, Node> {
  const connected = new Set((explanation.attention ?? []).flatMap((edge) => [edge.listener, edge.speaker]));
  // Sorted by name, so that a finding keeps its position when its strength changes.
  const concepts = explanation.concepts
    .filter((finding) => connected.has(finding.name))
    .sort((a, b) => a.name.localeCompare(b.name));
  return new Map(
    concepts.map((finding, index) => {
      const turn = (2 * Math.PI * index) / concepts.length - Math.PI / 2;
      return [
        finding.name,
        {
          finding,
          x: SIDE * 0.8 + RING_RADIUS * 1.25 * Math.cos(turn),
          y: SIDE / 2 + RING_RADIUS * Math.sin(turn),
        },
      ];
    }),
  );
}

function radius({ finding }: Node): number {
  return 8 + 8 * Math.min(Math.max(finding.strength ?? 0, 0), 1);
}

function Edge({ edge, nodes, label }: { edge: AttentionEdge; nodes: Map<string, Node>; label: string }) {
  const [from, to] = [nodes.get(edge.speaker), nodes.get(edge.listener)];
  if (!from || !to) return null;
  const weight = edge.weight ?? 0;
  return (
    <path
      d={from === to ? loop(from) : arrow(from, to)}
      className="edge"
      strokeWidth={0.8 + 5 * weight}
      markerEnd="url(#tip)"
    >
      <title>{label}</title>
    </path>
  );
}

/** Curved, so that the two arrows between a pair of findings do not overlap. */
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

function ConceptNode({ node }: { node: Node }) {
  const { studyData } = useReadingContext();
  const below = node.y >= SIDE / 2 - 1;
  const size = radius(node);
  return (
    <g className={node.finding.rejected ? "node rejected" : "node"}>
      <circle cx={node.x} cy={node.y} r={size} fill={conceptColour(studyData, node.finding.name)} />
      <text x={node.x} y={below ? node.y + size + 15 : node.y - size - 6} textAnchor="middle">
        {short(node.finding.title)}
      </text>
    </g>
  );
}

function short(title: string): string {
  return title.length > 22 ? `${title.slice(0, 20)}…` : title;
}
