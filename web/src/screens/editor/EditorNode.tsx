import { Handle, Position } from "@xyflow/react";
import { type CSSProperties, memo } from "react";
import type { NodeDocument, PortResponse } from "@/api/types";
import { TypeIcon } from "@/canvas/TypeIcon";
import { Icon } from "@/ui/icons";
import { type JsonSchema, schemaText } from "@/ui/schema";
import { Tag } from "@/ui/Tag";
import styles from "./EditorNode.module.css";
import { PLACEHOLDER } from "./graphEdits";
import { type DrawnPorts, handleId } from "./ports";

export type EditorNodeProps = {
  node: NodeDocument;
  ports: DrawnPorts;
  /** What it is to do; empty where nothing says it. */
  text: string;
  /** The handles that edges end at. */
  wired: ReadonlySet<string>;
  /** The colour of a socket type. */
  colourOf: (type: string) => string;
  /** Since the last revision. */
  change: "added" | "changed" | null;
  /** The worst of what the check found. */
  problem: "error" | "warning" | null;
  /** Why it stays as it is, in a plan that is run. */
  fixed: string | null;
  /** Drawn as a box without ports, for a view from far away. */
  isBox: boolean;
  isSelected: boolean;
  isTabStop: boolean;
  onSelect: (id: string) => void;
  /** Selects it and moves the focus to its form. */
  onOpen: (id: string) => void;
};

/** A step in the editor, with its ports: inputs left, outputs right, linked things below. */
export const EditorNode = memo(function EditorNode(props: EditorNodeProps) {
  const { ports, isBox, isSelected } = props;
  const isLinked = ports.tops.length > 0 && ports.outputs.length === 0;
  return (
    <div
      className={styles.node}
      data-selected={isSelected}
      data-problem={props.problem ?? undefined}
      data-linked={isLinked}
      data-placeholder={props.node.type === PLACEHOLDER}
      data-box={isBox}
    >
      {isBox ? <Name {...props} /> : <Content {...props} />}
    </div>
  );
});

function Content(props: EditorNodeProps) {
  const { node, ports, text } = props;
  return (
    <>
      {ports.tops.map((port) => (
        <Socket key={handleId(port)} port={port} type="source" position={Position.Top} {...props} />
      ))}
      <div className={styles.top}>
        <TypeIcon type={node.type} />
        <Name {...props} />
        {props.fixed !== null && (
          <span className={styles.fixed} title={`Fixed: ${props.fixed}`}>
            <Icon name="lock" small />
          </span>
        )}
        {props.problem && (
          <span
            className={styles.problem}
            title={`It has ${props.problem === "error" ? "an error" : "a warning"}`}
          >
            <Icon name={props.problem} small />
          </span>
        )}
      </div>
      <div className={styles.about}>
        <span className={styles.summary} title={summaryOf(node)}>
          {summaryOf(node)}
        </span>
        {props.change && (
          <Tag kind={props.change === "added" ? "add" : "change"}>
            {props.change === "added" ? "New" : "Changed"}
          </Tag>
        )}
      </div>
      {text !== "" && (
        <p className={styles.text} dir="auto" title={text}>
          {text}
        </p>
      )}
      <Ports {...props} />
      {ports.sides.length > 0 && (
        <div className={styles.sides}>
          {ports.sides.map((port) => (
            <span key={handleId(port)} className={styles.side}>
              {labelOf(port)}
              <Socket port={port} type="target" position={Position.Bottom} {...props} />
            </span>
          ))}
        </div>
      )}
    </>
  );
}

function Name({ node, fixed, isBox, isSelected, isTabStop, onSelect, onOpen }: EditorNodeProps) {
  const name = node.name || node.id;
  return (
    <button
      type="button"
      className={styles.name}
      title={name}
      tabIndex={isTabStop ? 0 : -1}
      aria-pressed={isSelected}
      aria-label={fixed !== null ? `${name}, fixed: ${fixed}` : isBox ? name : undefined}
      data-step={node.id}
      onClick={({ detail }) => (detail === 0 ? onOpen : onSelect)(node.id)}
    >
      {!isBox && name}
    </button>
  );
}

function Ports(props: EditorNodeProps) {
  const { inputs, outputs } = props.ports;
  const rows = Math.max(inputs.length, outputs.length);
  if (rows === 0) return null;
  return (
    <div className={styles.ports}>
      {Array.from({ length: rows }, (_, row) => {
        const [input, output] = [inputs[row], outputs[row]];
        return (
          <div
            className={styles.row}
            key={`${input && handleId(input)} ${output && handleId(output)}`}
          >
            <span>
              {input && (
                <>
                  <Socket port={input} type="target" position={Position.Left} {...props} />
                  {labelOf(input)}
                </>
              )}
            </span>
            <span>
              {output && (
                <>
                  {labelOf(output)}
                  <Socket port={output} type="source" position={Position.Right} {...props} />
                </>
              )}
            </span>
          </div>
        );
      })}
    </div>
  );
}

type SocketProps = Pick<EditorNodeProps, "wired" | "colourOf"> & {
  port: PortResponse;
  type: "source" | "target";
  position: Position;
};

function Socket({ port, type, position, wired, colourOf }: SocketProps) {
  return (
    <Handle
      type={type}
      position={position}
      id={handleId(port)}
      className={styles.socket}
      data-shape={port.shape}
      data-wired={wired.has(handleId(port))}
      title={[
        `${labelOf(port)}: ${port.type}, ${port.channel}`,
        schemaText(port.schema as JsonSchema),
      ]
        .filter(Boolean)
        .join("\n")}
      style={{ "--socket": colourOf(port.type) } as CSSProperties}
    />
  );
}

function labelOf(port: PortResponse): string {
  return port.label || port.name;
}

function summaryOf(node: NodeDocument): string {
  const { model, provider, kind } = node.data ?? {};
  if (node.type === PLACEHOLDER && typeof kind === "string") return kind;
  const choice = [model, provider].find((each) => typeof each === "string" && each !== "");
  return choice ? `${node.type}, ${String(choice)}` : node.type;
}
