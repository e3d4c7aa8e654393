import { Panel } from "@xyflow/react";
import type { CSSProperties } from "react";
import styles from "./PortLegend.module.css";
import type { DrawnPorts } from "./ports";

type PortLegendProps = {
  views: ReadonlyMap<string, { ports: DrawnPorts }>;
  /** The colour of a socket type. */
  colourOf: (type: string) => string;
};

/** What the sockets and lines of the canvas mean. */
export function PortLegend({ views, colourOf }: PortLegendProps) {
  const shapes = new Map<string, string>();
  for (const { ports } of views.values()) {
    for (const port of [...ports.inputs, ...ports.outputs, ...ports.sides, ...ports.tops]) {
      shapes.set(port.type, port.shape);
    }
  }
  return (
    <Panel position="bottom-left" className={styles.legend}>
      {[...shapes].slice(0, MOST).map(([type, shape]) => (
        <span key={type}>
          <i data-shape={shape} style={{ "--socket": colourOf(type) } as CSSProperties} />
          {type}
        </span>
      ))}
      <span>
        <svg viewBox="0 0 22 8" aria-hidden="true">
          <path d="M1 4h20" />
        </svg>
        flow
      </span>
      <span>
        <svg viewBox="0 0 22 8" aria-hidden="true">
          <path d="M1 4h20" strokeDasharray="4 3" />
        </svg>
        link
      </span>
    </Panel>
  );
}

/** More socket types than fit beside the tools are not listed. */
const MOST = 6;
