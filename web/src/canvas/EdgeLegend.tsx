import { Panel } from "@xyflow/react";
import styles from "./EdgeLegend.module.css";
import type { EdgeStatus } from "./WaveEdge";

export type LegendLine = readonly [status: EdgeStatus | "link", words: string];

/** The lines of a run. */
export const RUN_LINES: readonly LegendLine[] = [
  ["delivered", "delivered"],
  ["waiting", "not yet"],
  ["skipped", "skipped"],
  ["failed", "failed"],
];

/** The line of what a step uses, such as the tools of an agent. */
const LINK_LINE: LegendLine = ["link", "link"];

type EdgeLegendProps = {
  lines: readonly LegendLine[];
  edges: readonly { isLink: boolean }[];
};

/** What the lines between the cards mean: those given, and links where there are any. */
export function EdgeLegend({ lines, edges }: EdgeLegendProps) {
  const all = edges.some(({ isLink }) => isLink) ? [...lines, LINK_LINE] : lines;
  return (
    <Panel position="bottom-left" className={styles.legend}>
      {all.map(([status, words]) => (
        <span key={status}>
          <svg viewBox="0 0 22 8" aria-hidden="true">
            <path className={styles[status]} d="M1 4h20" />
          </svg>
          {words}
        </span>
      ))}
    </Panel>
  );
}
