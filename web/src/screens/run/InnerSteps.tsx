import { useRef } from "react";
import { useRun } from "@/stream/RunProvider";
import { Icon } from "@/ui/icons";
import { StatusIcon } from "@/ui/Status";
import { useNow } from "@/ui/useNow";
import { useStickToEnd } from "@/ui/useStickToEnd";
import type { Folding } from "./folding";
import styles from "./InnerSteps.module.css";
import { type InnerRow, innerHeight, innerRows } from "./innerSteps";

type InnerStepsProps = Folding & {
  path: string;
  name: string;
  selectedPath: string | null;
  onSelect: (path: string) => void;
  /** False in a view from so far away that they would be too small. */
  hasButtons: boolean;
};

/** What is inside a loop, a sub-graph or a plan: a row per step, and per round where it has several. */
export function InnerSteps(props: InnerStepsProps) {
  const { path, name, folds } = props;
  const run = useRun((state) => state);
  const now = useNow(run.endedAt === null);
  const rows = innerRows(run, path, folds, now);
  const list = useRef<HTMLOListElement>(null);
  useStickToEnd(list);
  return (
    <div
      className={styles.scroller}
      style={{ height: innerHeight(run, path, folds) }}
      data-scroller
    >
      {rows.length === 0 && <p className={styles.empty}>Its steps appear here.</p>}
      <ol aria-label={`Inside ${name}`} ref={list}>
        {rows.map((row) => (
          <Row key={row.path} row={row} {...props} />
        ))}
      </ol>
    </div>
  );
}

function Row(props: InnerStepsProps & { row: InnerRow }) {
  const { row, selectedPath, onSelect, onFold, hasButtons } = props;
  const { path, name, status, isOpen } = row;
  const isSelected = path === selectedPath;
  const fold = isOpen === undefined ? undefined : () => onFold(path, !isOpen);
  const act = row.isKnown ? () => onSelect(path) : fold;
  const words = [name, status.replace("_", " "), row.duration].filter(Boolean).join(", ");
  return (
    <li className={styles.row} data-selected={isSelected} data-status={status}>
      <span className={styles.indent} style={{ width: row.depth * 12 }} />
      <StatusIcon status={status} />
      {act && hasButtons ? (
        <button
          type="button"
          className={styles.name}
          title={name}
          aria-label={words}
          {...(row.isKnown ? { "aria-pressed": isSelected } : { "aria-expanded": isOpen })}
          onClick={act}
        >
          {name}
        </button>
      ) : (
        <span className={styles.name} title={name}>
          {name}
        </span>
      )}
      <span className={styles.duration}>{row.duration}</span>
      {fold && hasButtons && (
        <button
          type="button"
          className={styles.fold}
          aria-label={`Steps of ${name}`}
          aria-expanded={isOpen}
          onClick={fold}
        >
          <Icon name={isOpen ? "up" : "down"} small />
        </button>
      )}
    </li>
  );
}
