import type { CSSProperties } from "react";
import type { Point } from "./layout";
import styles from "./WaveEdge.module.css";

/** The sign in the middle of an edge; none where the line says it all. */
const SIGNS = {
  plan: null,
  waiting: null,
  live: null,
  delivered: null,
  skipped: "M-4-3.5L.5 0-4 3.5ZM3.5-3.5V3.5",
  failed: "M-3.5-3.5L3.5 3.5M3.5-3.5L-3.5 3.5",
  added: "M-4 0H4M0-4V4",
  removed: "M-4 0H4",
} as const;

/** How far a value has come along an edge; `plan` is an edge that no run has touched. `added` and
 * `removed` are edges that only one of two compared graphs has. */
export type EdgeStatus = keyof typeof SIGNS;

type WaveEdgeProps = {
  path: string;
  from: Point;
  to: Point;
  status: EdgeStatus;
  isLink: boolean;
  /** Of a link, that of its socket. */
  colour?: string | undefined;
  /** Whether the ends are marked; the sockets of an editor are marks enough. */
  hasEnds?: boolean;
};

/** An edge between two cards: line, ends, and a sign where nothing will come. */
export function WaveEdge(props: WaveEdgeProps) {
  const { path, from, to, status, isLink, colour, hasEnds = true } = props;
  const sign = SIGNS[status];
  const middle = { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 };
  return (
    <g
      className={styles.edge}
      data-status={status}
      data-link={isLink}
      style={colour ? ({ "--socket-link": colour } as CSSProperties) : undefined}
    >
      <path d={path} className={styles.line} />
      {hasEnds && (
        <>
          <circle className={styles.end} cx={from.x} cy={from.y} r="3.5" />
          <circle className={styles.end} cx={to.x} cy={to.y} r="3.5" />
        </>
      )}
      {status === "live" && hasEnds && !isLink && (
        <circle className={styles.dot} r="3" style={{ offsetPath: `path("${path}")` }} />
      )}
      {sign && (
        <g transform={`translate(${middle.x} ${middle.y})`}>
          <circle className={styles.mark} r="9" />
          <path className={styles.sign} d={sign} />
        </g>
      )}
    </g>
  );
}
