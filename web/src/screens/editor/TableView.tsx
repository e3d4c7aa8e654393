import { Fragment, useMemo } from "react";
import type { DiagnosticResponse, GraphDocument, NodeDocument } from "@/api/types";
import { groupBy } from "@/canvas/grouping";
import { IconButton } from "@/ui/IconButton";
import { Icon } from "@/ui/icons";
import { Status } from "@/ui/Status";
import { Row, RowGap, Table } from "@/ui/Table";
import { useVirtualRows } from "@/ui/useVirtualRows";
import type { FixedStep, FixedSteps } from "./fixedSteps";
import styles from "./TableView.module.css";

type TableViewProps = {
  graph: GraphDocument;
  diagnostics: readonly DiagnosticResponse[];
  fixed: FixedSteps;
  selection: ReadonlySet<string>;
  onOpen: (id: string) => void;
  onRemove: (id: string) => void;
};

const COLUMNS = [
  { label: "Step" },
  { label: "Type", width: "140px" },
  { label: "Depends on", width: "30%" },
  { label: "Problems", width: "120px" },
  { label: "Remove", width: "56px", hiddenLabel: true },
] as const;

/** Of a row, in px: `--row-h`. */
const ROW_HEIGHT = 44;

/** Every step as a row: the whole editor without a mouse, together with the step's panel. */
export function TableView(props: TableViewProps) {
  const { graph, diagnostics, fixed, selection, onOpen, onRemove } = props;
  const { nodes } = graph;
  const { list, rows, rest } = useVirtualRows<HTMLTableSectionElement>(nodes.length, ROW_HEIGHT);
  const before = useMemo(() => namesBefore(graph), [graph]);
  return (
    <div className={styles.table}>
      <Table label="Steps of the plan" columns={COLUMNS} rowCount={nodes.length} bodyRef={list}>
        {rows.map(({ index, gap }) => {
          const node = nodes[index];
          if (!node) return null;
          const isSelected = selection.has(node.id);
          return (
            <Fragment key={node.id}>
              <RowGap height={gap} />
              <Row chosen={isSelected} index={index}>
                <Cells
                  {...{ node, isSelected, onOpen, onRemove }}
                  after={before.get(node.id)?.join(", ") ?? ""}
                  fixed={fixed.get(node.id)}
                  found={diagnostics.filter((each) => each.node === node.id)}
                />
              </Row>
            </Fragment>
          );
        })}
        <RowGap height={rest} />
      </Table>
    </div>
  );
}

/** Returns the names of the steps that each step depends on. */
function namesBefore({ nodes, edges }: GraphDocument): ReadonlyMap<string, string[]> {
  const names = new Map(nodes.map((node) => [node.id, node.name || node.id]));
  return groupBy(
    edges,
    (edge) => edge.target,
    (edge) => names.get(edge.source) ?? edge.source,
  );
}

type CellsProps = Pick<TableViewProps, "onOpen" | "onRemove"> & {
  node: NodeDocument;
  isSelected: boolean;
  after: string;
  found: readonly DiagnosticResponse[];
  fixed: FixedStep | undefined;
};

function Cells({ node, isSelected, after, found, fixed, onOpen, onRemove }: CellsProps) {
  const errors = found.filter((each) => each.severity === "error").length;
  return (
    <>
      <td>
        <button
          type="button"
          className={styles.name}
          title={node.name || node.id}
          aria-pressed={isSelected}
          data-step={node.id}
          onClick={() => onOpen(node.id)}
        >
          {node.name || node.id}
        </button>
        <p className={styles.more}>
          {node.type}
          {after && `, after ${after}`}
        </p>
      </td>
      <td>{node.type}</td>
      <td title={after}>{after}</td>
      <td>
        {errors > 0 && (
          <Status status="failed">{errors === 1 ? "1 error" : `${errors} errors`}</Status>
        )}
        {errors === 0 && found.length > 0 && <Status status="waiting">Warning</Status>}
        {fixed && (
          <span className={styles.fixed} title={fixed.why}>
            <Icon name="lock" small />
            Fixed
          </span>
        )}
      </td>
      <td>
        {fixed?.canRemove !== false && (
          <IconButton
            icon="trash"
            label={`Remove ${node.name || node.id}`}
            small
            onClick={() => onRemove(node.id)}
          />
        )}
      </td>
    </>
  );
}
