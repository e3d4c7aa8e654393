import { useState } from "react";
import type { EdgeDocument, GraphDocument, NodeDocument } from "@/api/types";
import { Button } from "@/ui/Button";
import { SelectField } from "@/ui/Field";
import { IconButton } from "@/ui/IconButton";
import { Note } from "@/ui/Note";
import styles from "./Dependencies.module.css";
import { connect, type PortEnd, refusalOf, removeEdges } from "./graphEdits";
import { edgeHandle, findPort, handleId, type PortLookup } from "./ports";

type DependenciesProps = {
  graph: GraphDocument;
  node: NodeDocument;
  portsOf: PortLookup;
  onChange: (graph: GraphDocument) => void;
  onSelect: (ids: string[]) => void;
};

/** What a step depends on, and a form that adds a dependency: wires without a mouse. */
export function Dependencies({ graph, node, portsOf, onChange, onSelect }: DependenciesProps) {
  const incoming = graph.edges.filter((edge) => edge.target === node.id);
  const outgoing = graph.edges.filter((edge) => edge.source === node.id);
  const row = (edge: EdgeDocument, other: string) => (
    <EdgeRow
      key={edge.id}
      edge={edge}
      ports={portNames(edge, graph, portsOf)}
      name={graph.nodes.find((each) => each.id === other)?.name || other}
      onOpen={() => onSelect([other])}
      onRemove={() => onChange(removeEdges(graph, new Set([edge.id ?? ""])))}
    />
  );
  return (
    <div className={styles.dependencies}>
      <section aria-label="Depends on">
        <h3>Depends on</h3>
        {incoming.length === 0 && <p>Nothing: it starts in wave 1.</p>}
        <ul>{incoming.map((edge) => row(edge, edge.source))}</ul>
      </section>
      <AddDependency
        key={node.id}
        graph={graph}
        node={node}
        portsOf={portsOf}
        onChange={onChange}
      />
      <section aria-label="Needed by">
        <h3>Needed by</h3>
        {outgoing.length === 0 && <p>Nothing: what it gives is part of the result.</p>}
        <ul>{outgoing.map((edge) => row(edge, edge.target))}</ul>
      </section>
    </div>
  );
}

type EdgeRowProps = {
  edge: EdgeDocument;
  /** The names of its output and its input. */
  ports: [string, string];
  name: string;
  onOpen: () => void;
  onRemove: () => void;
};

function EdgeRow({ edge, ports, name, onOpen, onRemove }: EdgeRowProps) {
  return (
    <li className={styles.row}>
      <Button small kind="quiet" onClick={onOpen}>
        {name}
      </Button>
      <span>
        {ports.join(" → ")}
        {edge.data.channel === "link" && ", link"}
      </span>
      <IconButton
        icon="close"
        label={`Remove the wire from ${edge.source} to ${edge.target}`}
        small
        onClick={onRemove}
      />
    </li>
  );
}

/** Returns the ports of an edge by the names that the form and the canvas give them. */
function portNames(
  edge: EdgeDocument,
  graph: GraphDocument,
  portsOf: PortLookup,
): [string, string] {
  const name = (side: "source" | "target", fallback: string) => {
    const node = graph.nodes.find((each) => each.id === edge[side]);
    const end = findPort(node, side, edgeHandle(edge, side), portsOf);
    return end ? end.port.label || end.port.name : fallback;
  };
  return [
    name("source", edge.sourceHandle ?? "output"),
    name("target", edge.targetHandle ?? "input"),
  ];
}

function AddDependency({ graph, node, portsOf, onChange }: Omit<DependenciesProps, "onSelect">) {
  const others = graph.nodes.filter((each) => each.id !== node.id);
  const [sourceId, setSourceId] = useState(others[0]?.id ?? "");
  const source = graph.nodes.find((each) => each.id === sourceId);
  const outputs = source ? portsOf(source).outputs : [];
  const inputs = portsOf(node).inputs;
  const [outputHandle, setOutput] = useState("");
  const [inputHandle, setInput] = useState("");
  const output = outputs.find((port) => handleId(port) === outputHandle) ?? outputs[0];
  const fitting = inputs.filter((port) => port.channel === output?.channel);
  const input =
    fitting.find((port) => handleId(port) === inputHandle) ??
    fitting.find((port) => port.channel === "link" && port.type === output?.type) ??
    fitting[0];
  const ends: [PortEnd, PortEnd] | null =
    source && output && input
      ? [
          { node: source.id, port: output },
          { node: node.id, port: input },
        ]
      : null;
  const refusal = ends ? refusalOf(...ends) : "These steps have no ports that fit.";
  if (others.length === 0) return <p>Add another step first.</p>;
  return (
    <section className={styles.add} aria-label="Add a dependency">
      <SelectField
        label="Step"
        value={sourceId}
        onChange={(event) => setSourceId(event.target.value)}
      >
        {others.map((each) => (
          <option key={each.id} value={each.id}>
            {each.name || each.id}
          </option>
        ))}
      </SelectField>
      <SelectField
        label="Its output"
        value={output ? handleId(output) : ""}
        onChange={(event) => setOutput(event.target.value)}
      >
        {outputs.map((port) => (
          <option key={handleId(port)} value={handleId(port)}>
            {port.label || port.name} ({port.type}, {port.channel})
          </option>
        ))}
      </SelectField>
      <SelectField
        label="Into"
        value={input ? handleId(input) : ""}
        onChange={(event) => setInput(event.target.value)}
      >
        {fitting.map((port) => (
          <option key={handleId(port)} value={handleId(port)}>
            {port.label || port.name} ({port.type})
          </option>
        ))}
      </SelectField>
      {refusal && <Note kind="warning">{refusal}</Note>}
      <Button icon="add" onClick={() => ends && onChange(connect(graph, ...ends))}>
        Add dependency
      </Button>
    </section>
  );
}
