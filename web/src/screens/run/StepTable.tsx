import { Fragment } from "react";
import { callerInside, isQuestion } from "@/stream/calls";
import type { NodeState, RunState } from "@/stream/runState";
import { isCostUnknown } from "@/stream/usage";
import { formatCount, formatUsdShort } from "@/ui/format";
import { Status } from "@/ui/Status";
import { numericCell, Row, RowGap, Table } from "@/ui/Table";
import { useVirtualRows } from "@/ui/useVirtualRows";
import styles from "./StepTable.module.css";
import { durationOf } from "./stepSummary";

type StepTableProps = {
  run: RunState;
  now: number;
  selectedPath: string | null;
  onSelect: (path: string) => void;
};

const COLUMNS = [
  { label: "Step" },
  { label: "Status", width: "128px" },
  { label: "Wave", width: "64px", numeric: true },
  { label: "Model", width: "176px" },
  { label: "Attempts", width: "84px", numeric: true },
  { label: "Tokens", width: "84px", numeric: true },
  { label: "Cost", width: "104px", numeric: true },
  { label: "Time", width: "84px", numeric: true },
] as const;

/** Of a row, in px: `--row-h`. */
const ROW_HEIGHT = 44;

/** Every step as a row: the canvas for people who read tables. */
export function StepTable({ run, now, selectedPath, onSelect }: StepTableProps) {
  const steps = [...run.nodes.values()].filter((node) => isStep(run, node));
  const { list, rows, rest } = useVirtualRows<HTMLTableSectionElement>(steps.length, ROW_HEIGHT);
  return (
    <div className={styles.table}>
      <Table label="Steps" columns={COLUMNS} rowCount={steps.length} bodyRef={list}>
        {rows.map(({ index, gap }) => {
          const node = steps[index];
          if (!node) return null;
          const isSelected = node.path === selectedPath;
          return (
            <Fragment key={node.path}>
              <RowGap height={gap} />
              <Row chosen={isSelected} index={index}>
                <Cells {...{ node, now, isSelected, onSelect }} />
              </Row>
            </Fragment>
          );
        })}
        <RowGap height={rest} />
      </Table>
    </div>
  );
}

/** Questions about calls, and agents that stand in the runs of their calls, are no steps. */
function isStep(run: RunState, node: NodeState): boolean {
  return !isQuestion(node) && callerInside(run, node.prefix) !== node.path;
}

type CellsProps = Pick<StepTableProps, "now" | "onSelect"> & {
  node: NodeState;
  isSelected: boolean;
};

function Cells({ node, now, isSelected, onSelect }: CellsProps) {
  const { usage } = node;
  const depth = node.path.split("/").length - 1;
  return (
    <>
      <td>
        <button
          type="button"
          className={styles.name}
          style={{ paddingLeft: depth * 14 }}
          title={node.path}
          aria-pressed={isSelected}
          onClick={() => onSelect(node.path)}
        >
          {node.name}
        </button>
      </td>
      <td>
        <Status status={node.status} />
      </td>
      <td className={numericCell}>{node.wave}</td>
      <td title={node.model ?? undefined}>{node.model}</td>
      <td className={numericCell}>{node.attempt > 1 ? node.attempt : ""}</td>
      <td className={numericCell}>
        {usage.calls > 0 && formatCount(usage.input_tokens + usage.output_tokens)}
      </td>
      <td className={numericCell}>
        {(usage.calls > 0 || isCostUnknown(node)) &&
          (usage.cost_usd === null ? "–" : formatUsdShort(usage.cost_usd))}
      </td>
      <td className={numericCell}>{durationOf(node, now)}</td>
    </>
  );
}
