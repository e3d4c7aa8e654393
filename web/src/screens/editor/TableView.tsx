import type { DiagnosticResponse, GraphDocument, NodeDocument } from "@/api/types";
import { IconButton } from "@/ui/IconButton";
import { Status } from "@/ui/Status";
import { Row, Table } from "@/ui/Table";
import styles from "./TableView.module.css";

type TableViewProps = {
  graph: GraphDocument;
  diagnostics: readonly DiagnosticResponse[];
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

/** Every step as a row: the whole editor without a mouse, together with the step's panel. */
export function TableView(props: TableViewProps) {
  return (
    <div className={styles.table}>
      <Table label="Steps of the plan" columns={COLUMNS}>
        {props.graph.nodes.map((node) => (
          <Row key={node.id} chosen={props.selection.has(node.id)}>
            <Cells node={node} {...props} />
          </Row>
        ))}
      </Table>
    </div>
  );
}

function Cells({
  node,
  graph,
  diagnostics,
  selection,
  onOpen,
  onRemove,
}: TableViewProps & { node: NodeDocument }) {
  const found = diagnostics.filter((each) => each.node === node.id);
  const errors = found.filter((each) => each.severity === "error").length;
  const sources = graph.edges.filter((edge) => edge.target === node.id).map((edge) => edge.source);
  const name = (id: string) => graph.nodes.find((each) => each.id === id)?.name || id;
  const after = sources.map(name).join(", ");
  return (
    <>
      <td>
        <button
          type="button"
          className={styles.name}
          title={node.name || node.id}
          aria-pressed={selection.has(node.id)}
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
      </td>
      <td>
        <IconButton
          icon="trash"
          label={`Remove ${node.name || node.id}`}
          small
          onClick={() => onRemove(node.id)}
        />
      </td>
    </>
  );
}
