import { type ReactNode, useId } from "react";
import { useFlows, useMcpServers, useTools } from "@/api/queries";
import { isObject } from "@/json";
import { SelectField, TextField } from "@/ui/Field";
import { type FieldProps, fieldLook } from "@/ui/SchemaForm";
import { Checkbox } from "@/ui/Switch";
import styles from "./catalogueFields.module.css";

type Controls = Readonly<Record<string, (props: FieldProps) => ReactNode>>;

/** Fields whose values the service lists, by node type. */
const CONTROLS: Readonly<Record<string, Controls>> = {
  tool: { name: ToolField },
  toolset: { names: ToolsField },
  mcp_server: { server: ServerField },
  flow_tool: { name: ToolNameField, flow: FlowField },
  http_tool: { name: ToolNameField },
  call_tool: { tool: CalledToolField, server: ServerField, flow: FlowField },
};

/** Returns the controls of the fields of a node type that offer what the service lists. */
export function catalogueControls(nodeType: string): Controls {
  return CONTROLS[nodeType] ?? {};
}

/** One of the tools of the operator. */
function ToolField(props: FieldProps) {
  const tools = useTools().data?.tools ?? [];
  const chosen = tools.find((tool) => tool.name === props.value);
  return (
    <NameField
      {...props}
      label="Tool"
      names={tools.map(({ name, effect }) => [name, `${name} (${EFFECTS[effect]})`])}
      hint={chosen?.description}
    />
  );
}

/** The tool that a step calls: one of the operator's, or any name of a tool of a server. */
function CalledToolField({ field, value, onChange, error, tag }: FieldProps) {
  const tools = useTools().data?.tools ?? [];
  const listId = useId();
  const name = typeof value === "string" ? value : "";
  const chosen = tools.find((tool) => tool.name === name);
  const look = { ...fieldLook(field, error, tag), label: "Tool" };
  return (
    <>
      <TextField
        {...look}
        hint={chosen?.description || look.hint}
        value={name}
        list={listId}
        autoComplete="off"
        onChange={(event) => onChange(event.target.value || undefined)}
      />
      <datalist id={listId}>
        {tools.map((tool) => (
          <option key={tool.name} value={tool.name}>
            {EFFECTS[tool.effect]}
          </option>
        ))}
      </datalist>
    </>
  );
}

const EFFECTS = {
  none: "changes nothing",
  read: "reads",
  write: "changes something",
  once: "acts, and only once",
} as const;

/** One of the MCP servers of the operator. */
function ServerField(props: FieldProps) {
  const servers = useMcpServers().data?.servers ?? [];
  return (
    <NameField
      {...props}
      label="Server"
      names={servers.map(({ name, kind }) => [
        name,
        `${name} (${kind === "stdio" ? "a program" : "a service"})`,
      ])}
    />
  );
}

/** What models call a tool; its step has a name too. */
function ToolNameField(props: FieldProps) {
  return <NameField {...props} label="Name of the tool" names={[]} />;
}

type NameFieldProps = FieldProps & {
  label: string;
  /** Each with its words. */
  names: readonly (readonly [name: string, words: string])[];
  /** What is known of the chosen one. */
  hint?: string | undefined;
};

/** A name out of a list, also one that is not in it; without a list any text. */
function NameField(props: NameFieldProps) {
  const { field, label, value, onChange, error, tag, names, hint } = props;
  const look = { ...fieldLook(field, error, tag), label };
  const name = typeof value === "string" ? value : "";
  if (names.length === 0) {
    return (
      <TextField
        {...look}
        value={name}
        onChange={(event) => onChange(event.target.value || undefined)}
      />
    );
  }
  const isUnknown = name !== "" && !names.some(([each]) => each === name);
  return (
    <SelectField
      {...look}
      hint={hint || look.hint}
      value={name}
      onChange={(event) => onChange(event.target.value || undefined)}
    >
      <option value="">Choose one</option>
      {isUnknown && <option value={name}>{name}, which is not there</option>}
      {names.map(([each, words]) => (
        <option key={each} value={each}>
          {words}
        </option>
      ))}
    </SelectField>
  );
}

/** Several of the tools of the operator; the order of the list stays. */
function ToolsField({ field, value, onChange, error, tag }: FieldProps) {
  const tools = useTools().data?.tools ?? [];
  const chosen = Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
  const known = tools.map((tool) => tool.name);
  const names = [...known, ...chosen.filter((name) => !known.includes(name))];
  const look = fieldLook(field, error, tag);
  const change = (name: string, isChosen: boolean) => {
    const others = chosen.filter((each) => each !== name);
    onChange(isChosen ? [...others, name] : others);
  };
  return (
    <fieldset className={styles.tools}>
      <legend>
        {look.label} {look.tag}
      </legend>
      {names.length === 0 && <p>The operator has made no tools available.</p>}
      {names.map((name) => (
        <Checkbox
          key={name}
          label={known.includes(name) ? name : `${name}, which is not there`}
          checked={chosen.includes(name)}
          onChange={(isChosen) => change(name, isChosen)}
        />
      ))}
      {(look.error || look.hint) && (
        <p className={look.error ? styles.error : undefined}>{look.error ?? look.hint}</p>
      )}
    </fieldset>
  );
}

/** A stored flow, which the data name by its id or its name: the revision is the live one, unless they name
 * another. */
function FlowField({ field, value, onChange, error, tag }: FieldProps) {
  const flows = useFlows();
  const { id, name } = flowNamed(value);
  const known = flows.find(
    (flow) => flow.plan_id === id || flow.name?.toLowerCase() === name?.toLowerCase(),
  );
  const other = known ? "" : (id ?? name ?? "");
  return (
    <SelectField
      {...fieldLook(field, error, tag)}
      value={known?.plan_id ?? other}
      onChange={(event) => onChange(event.target.value ? { id: event.target.value } : undefined)}
    >
      <option value="">Choose one</option>
      {other && <option value={other}>{name ? `${name}, which is not there` : other}</option>}
      {flows.map((flow) => (
        <option key={flow.plan_id} value={flow.plan_id}>
          {flow.name}
        </option>
      ))}
    </SelectField>
  );
}

function flowNamed(value: unknown): { id: string | undefined; name: string | undefined } {
  const { id, name } = isObject(value) ? value : {};
  return { id: textOf(id), name: textOf(name) };
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
