import { type ReactNode, useState } from "react";
import type {
  DiagnosticResponse,
  GraphDocument,
  ImportReport,
  NodeDocument,
  NodeTypeResponse,
} from "@/api/types";
import { TypeIcon } from "@/canvas/TypeIcon";
import { TaskField } from "@/inspector/TaskField";
import { writeJson } from "@/json";
import { TextField } from "@/ui/Field";
import { IconButton } from "@/ui/IconButton";
import { Icon } from "@/ui/icons";
import { Note } from "@/ui/Note";
import { SchemaForm } from "@/ui/SchemaForm";
import { type JsonSchema, type SchemaField, schemaDetails } from "@/ui/schema";
import { TabPanel, Tabs } from "@/ui/Tabs";
import { Tag } from "@/ui/Tag";
import { catalogueControls, usualFields } from "./catalogueFields";
import { Dependencies } from "./Dependencies";
import type { FixedStep } from "./fixedSteps";
import { PLACEHOLDER, updateNode } from "./graphEdits";
import { ImportedNotes } from "./ImportedNotes";
import { JsonField } from "./JsonField";
import styles from "./NodePanel.module.css";
import { PlaceholderFields } from "./PlaceholderFields";
import { PolicyForm } from "./PolicyForm";
import type { PortLookup } from "./ports";
import { problemWords } from "./problemWords";
import { readPlan } from "./readPlan";
import { type OnCorrect, SuggestionButton } from "./SuggestionButton";

export type NodePanelProps = {
  graph: GraphDocument;
  node: NodeDocument;
  /** What became of the file of another program that the graph was imported from. */
  imported?: ImportReport | undefined;
  /** Why it stays as it is, if so. */
  fixed: FixedStep | undefined;
  /** The node at the last revision, to mark what was changed since. */
  before: NodeDocument | undefined;
  type: NodeTypeResponse | undefined;
  diagnostics: readonly DiagnosticResponse[];
  portsOf: PortLookup;
  onChange: (graph: GraphDocument, kind?: string) => void;
  onSelect: (ids: string[]) => void;
  onCorrect: OnCorrect;
  /** What can be done with words of the task. */
  onWords: ((words: string) => ReactNode) | undefined;
  /** What a step did when it ran last. */
  lastRun: ((id: string) => ReactNode) | undefined;
  /** Without it, the id stays. */
  onRename: ((to: string) => Promise<void>) | undefined;
  onDuplicate: () => void;
  onRemove: () => void;
  onClose: () => void;
  ref: React.Ref<HTMLElement>;
};

type PanelTab = "settings" | "dependencies" | "policy" | "last" | "json";

/** The form of one step. */
export function NodePanel(props: NodePanelProps) {
  const { graph, node, fixed } = props;
  const [tab, setTab] = useState<PanelTab>("settings");
  const count = graph.edges.filter((edge) => edge.target === node.id).length;
  const change = (fields: Partial<NodeDocument>, kind: string) =>
    props.onChange(updateNode(graph, node.id, fields), `${node.id} ${kind}`);
  return (
    <aside
      ref={props.ref}
      className={styles.panel}
      aria-label={`Settings of ${node.name || node.id}`}
      tabIndex={-1}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.defaultPrevented) return;
        event.preventDefault();
        props.onClose();
      }}
    >
      <header className={styles.head}>
        <div className={styles.title}>
          <TypeIcon type={node.type} />
          <h2 title={node.id}>{node.name || node.id}</h2>
          <IconButton
            icon="copy"
            label="Duplicate"
            keys="Ctrl D"
            small
            onClick={props.onDuplicate}
          />
          {fixed?.canRemove !== false && (
            <IconButton icon="trash" label="Remove" keys="Del" small onClick={props.onRemove} />
          )}
          <IconButton icon="close" label="Close" keys="Esc" small onClick={props.onClose} />
        </div>
        <p>{props.type ? `${node.type}: ${props.type.summary}` : node.type}</p>
        {fixed && (
          <p className={styles.fixed}>
            <Icon name="lock" small />
            Fixed: {fixed.why}.{" "}
            {fixed.canRemove
              ? "It can be taken out, but not changed."
              : "What has begun stays; fork the run to change it."}
          </p>
        )}
      </header>
      <Tabs
        label="Parts of the step"
        value={tab}
        onChange={setTab}
        className={styles.tabs}
        tabs={[
          { value: "settings", label: "Settings" },
          { value: "dependencies", label: "Depends on", count },
          { value: "policy", label: "Policy" },
          ...(props.lastRun ? [{ value: "last", label: "Last run" } as const] : []),
          { value: "json", label: "JSON" },
        ]}
      >
        <TabPanel value="settings" className={styles.body}>
          <Fields isFixed={fixed !== undefined}>
            <Settings {...props} onFields={change} />
          </Fields>
        </TabPanel>
        <TabPanel value="dependencies" className={styles.body}>
          <Dependencies {...props} />
        </TabPanel>
        <TabPanel value="policy" className={styles.body}>
          <Fields isFixed={fixed !== undefined}>
            <PolicyForm
              policy={node.policy ?? {}}
              onChange={(policy) => change({ policy }, "policy")}
            />
          </Fields>
        </TabPanel>
        {props.lastRun && (
          <TabPanel value="last" className={styles.body}>
            {props.lastRun(node.id)}
          </TabPanel>
        )}
        <TabPanel value="json" className={styles.body}>
          <Fields isFixed={fixed !== undefined}>
            <JsonField
              key={node.id}
              label="The step as JSON"
              value={node}
              onChange={(value) => replaceNode(props, value)}
            />
          </Fields>
        </TabPanel>
      </Tabs>
    </aside>
  );
}

/** Fields that can be read, but not changed, where a step is fixed. */
function Fields({ isFixed, children }: { isFixed: boolean; children: ReactNode }) {
  return (
    <fieldset className={styles.fields} disabled={isFixed}>
      {children}
    </fieldset>
  );
}

/** Puts what was typed as JSON in place of the node; returns why it cannot be, else null. */
function replaceNode({ graph, node, onChange }: NodePanelProps, value: unknown): string | null {
  const nodes = graph.nodes.map((each) => (each.id === node.id ? value : each));
  const read = readPlan({ nodes, edges: graph.edges });
  if ("problem" in read) return read.problem;
  if ((value as NodeDocument).id !== node.id) return "The id is changed in Settings.";
  onChange(read.graph, `${node.id} json`);
  return null;
}

type SettingsProps = NodePanelProps & {
  onFields: (fields: Partial<NodeDocument>, kind: string) => void;
};

function Settings(props: SettingsProps) {
  const { node, before, type, graph, diagnostics, onFields } = props;
  const errors = fieldErrors(diagnostics, graph);
  // What is wrong with a field is said at the field; here is what has a button, or no field.
  const noted = diagnostics.filter((found) => found.suggestion || !isOfField(found, type));
  const wired = new Set(
    graph.edges
      .filter((edge) => edge.target === node.id)
      .map((edge) => edge.targetHandle ?? "input"),
  );
  return (
    <div className={styles.form}>
      {noted.map((found) => (
        <Note
          key={found.pointer + found.code}
          kind={found.severity === "error" ? "error" : "warning"}
        >
          {problemWords(found, graph)}{" "}
          <SuggestionButton suggestion={found.suggestion} onCorrect={props.onCorrect} />
        </Note>
      ))}
      {props.imported && <ImportedNotes report={props.imported} id={node.id} />}
      <TextField
        label="Name"
        value={node.name ?? ""}
        placeholder={node.id}
        onChange={(event) => onFields({ name: event.target.value }, "name")}
      />
      <TaskField
        type={node.type}
        task={node.description ?? ""}
        onChange={(description) => onFields({ description }, "description")}
        onWords={props.onWords}
      />
      {type && <Values type={type} />}
      {node.type === PLACEHOLDER ? (
        <PlaceholderFields {...props} />
      ) : type ? (
        <SchemaForm
          schema={type.schema}
          value={node.data ?? {}}
          errors={errors}
          controls={catalogueControls(type)}
          usual={usualFields(type)}
          tag={(field) => <FieldTag field={field} node={node} before={before} wired={wired} />}
          onChange={(data) => onFields({ data: { ...data } }, "data")}
        />
      ) : (
        <Note kind="warning">
          The type {node.type} is not loaded here; its data can be edited as JSON.
        </Note>
      )}
      {props.onRename && <IdField id={node.id} graph={graph} onRename={props.onRename} />}
    </div>
  );
}

/** What a node takes and gives, where its type says more of it than the type of a socket. */
function Values({ type }: { type: NodeTypeResponse }) {
  const ports = [
    ...type.inputs.map((port) => ({ port, way: "Takes" })),
    ...type.outputs.map((port) => ({ port, way: "Gives" })),
  ]
    .filter(({ port }) => port.channel === "flow")
    .map((each) => ({ ...each, text: schemaDetails(each.port.schema as JsonSchema | undefined) }))
    .filter(({ text }) => text !== "");
  if (ports.length === 0) return null;
  return (
    <dl className={styles.values}>
      {ports.map(({ port, way, text }) => (
        <div key={way + port.name}>
          <dt>
            {way} <code>{port.name}</code>
            {port.required && ", required"}
          </dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  );
}

type IdFieldProps = {
  id: string;
  graph: GraphDocument;
  onRename: (to: string) => Promise<void>;
};

/** The id of a step; it is changed in edges and expressions too, once the field is left. */
function IdField({ id, graph, onRename }: IdFieldProps) {
  const [draft, setDraft] = useState(id);
  const isTaken = draft !== id && graph.nodes.some((node) => node.id === draft);
  const rename = () => {
    const to = draft.trim();
    if (to === "" || isTaken) setDraft(id);
    else if (to !== id) void onRename(to).then(() => setDraft(id)); // refused: the id is as it was
  };
  return (
    <TextField
      label="Id"
      hint="Edges and expressions follow a new id."
      error={isTaken ? `Another step has the id ${draft}.` : undefined}
      maxLength={64}
      spellCheck={false}
      value={draft}
      onChange={(event) => setDraft(event.target.value)}
      onBlur={rename}
      onKeyDown={(event) => event.key === "Enter" && rename()}
    />
  );
}

type FieldTagProps = Pick<SettingsProps, "node" | "before"> & {
  field: SchemaField;
  wired: ReadonlySet<string>;
};

/** "linked" where a wire beats the field, "was 220" where it was changed since the last revision. */
function FieldTag({ field, node, before, wired }: FieldTagProps) {
  if (wired.has(field.name)) return <Tag>wired: the wire beats what is here</Tag>;
  const [old, now] = [before?.data?.[field.name], node.data?.[field.name]];
  if (before && writeJson(old) !== writeJson(now)) {
    return (
      <Tag kind="change">
        {old === undefined || old === null ? "was empty" : `was ${shorten(old)}`}
      </Tag>
    );
  }
  return field.required ? <Tag>required</Tag> : null;
}

function shorten(value: unknown): string {
  const text = typeof value === "string" ? value : writeJson(value);
  return text.length > 24 ? `${text.slice(0, 24)} …` : text;
}

/** Returns what is wrong with each field of `data`, by its path: `/nodes/2/data/items/0/count`. */
function fieldErrors(
  diagnostics: readonly DiagnosticResponse[],
  graph: GraphDocument,
): Record<string, string> {
  const errors: Record<string, string> = {};
  for (const found of diagnostics) {
    const field = fieldOf(found);
    if (field && found.severity === "error") errors[field] ??= problemWords(found, graph);
  }
  return errors;
}

function fieldOf({ pointer }: DiagnosticResponse): string | undefined {
  return pointer.match(/^\/nodes\/\d+\/data\/(.+)/)?.[1];
}

/** Whether the form has a field that says what was found. */
function isOfField(found: DiagnosticResponse, type: NodeTypeResponse | undefined): boolean {
  const name = fieldOf(found)?.split("/")[0] ?? "";
  const { properties } = (type?.schema ?? {}) as JsonSchema;
  const isShown = type?.node_type !== PLACEHOLDER && properties?.[name] !== undefined;
  return found.severity === "error" && isShown;
}
