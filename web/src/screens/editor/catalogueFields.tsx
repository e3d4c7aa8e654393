import { useId, useState } from "react";
import { useFlows, useMcpServers, useProviders, useTools } from "@/api/queries";
import type { NodeTypeResponse } from "@/api/types";
import { isObject } from "@/json";
import { chosenProvider } from "@/screens/goal/providerChoice";
import { SelectField, TextField } from "@/ui/Field";
import { ListControl } from "@/ui/SchemaForm";
import { Checkbox } from "@/ui/Switch";
import type { JsonSchema } from "@/ui/schema";
import { type Controls, type FieldProps, fieldLook } from "@/ui/valueControls";
import styles from "./catalogueFields.module.css";

/** Fields whose values the service lists, by node type. */
const CONTROLS: Readonly<Record<string, Controls>> = {
  tool: { name: ToolField },
  toolset: { names: ToolsField },
  mcp_server: { server: ServerField },
  flow_tool: { name: ToolNameField, flow: FlowField },
  http_tool: { name: ToolNameField },
  call_tool: { tool: CalledToolField, server: ServerField, flow: FlowField },
  inner: { flow: FlowField },
  loop: { flow: FlowField },
  while: { flow: FlowField },
};
/** Those of every type that asks a model. */
const MODEL_CONTROLS: Controls = { provider: ProviderField, model: ModelField };

type TypeFields = Pick<NodeTypeResponse, "node_type" | "schema">;

/** Returns the controls of the fields of a node type that offer what the service lists. */
export function catalogueControls({ node_type, schema }: TypeFields): Controls {
  const own = CONTROLS[node_type] ?? {};
  const { provider, model } = (schema as JsonSchema).properties ?? {};
  return provider && model ? { ...MODEL_CONTROLS, fallback: FallbackField, ...own } : own;
}

/** Types with more fields than this have the seldom ones folded. */
const MOST_UNFOLDED = 7;
/** What a step is mostly told, in the order in which it is read. */
const USUAL = [
  "provider",
  "model",
  "systemPrompt",
  "userPrompt",
  "prompt",
  "goal",
  "text",
  "url",
  "method",
  "headers",
  "name",
  "description",
  "items",
  "flow",
  "body",
  "parameters",
];

/** Returns the fields of a node type that are seen first; undefined where all are. */
export function usualFields({ schema }: TypeFields): readonly string[] | undefined {
  const names = Object.keys((schema as JsonSchema).properties ?? {});
  if (names.length <= MOST_UNFOLDED) return undefined;
  const usual = USUAL.filter((name) => names.includes(name));
  return usual.length > 0 ? usual : names.slice(0, MOST_UNFOLDED);
}

/** Who runs the model. */
function ProviderField(props: FieldProps) {
  const providers = useProviders().data?.details ?? [];
  return (
    <NameField
      {...props}
      label="Provider"
      none="The usual one"
      names={providers.map(({ name, kind, available }) => [
        name,
        `${kind === "local" ? `${name}, embedded` : name}${available ? "" : " (cannot be used yet)"}`,
      ])}
    />
  );
}

/** The choice that lets one type the name of a model; no model is called so. */
const BY_NAME = " by name";

/** One of the models of the provider, or one that is named where it takes any. */
function ModelField({ field, value, siblings, onChange, error, tag }: FieldProps) {
  const providers = useProviders().data?.details ?? [];
  const choice = { provider: textOf(siblings?.provider) ?? null, model: null };
  const provider = chosenProvider(choice, providers);
  const [isTyped, setTyped] = useState(false);
  const look = { ...fieldLook(field, error, tag), label: "Model" };
  const name = textOf(value) ?? "";
  const models = provider?.models ?? [];
  if (isTyped || models.length === 0) {
    return (
      <TextField
        {...look}
        value={name}
        autoFocus={isTyped}
        spellCheck={false}
        onChange={(event) => onChange(event.target.value || undefined)}
      />
    );
  }
  const usual = provider?.default_model;
  const choose = (chosen: string) =>
    chosen === BY_NAME ? setTyped(true) : onChange(chosen || undefined);
  return (
    <SelectField {...look} value={name} onChange={(event) => choose(event.target.value)}>
      <option value="">{usual ? `${usual}, as usual` : "The usual one"}</option>
      {name !== "" && !models.includes(name) && (
        <option value={name}>
          {provider?.open_models ? name : `${name}, which ${provider?.name} does not have`}
        </option>
      )}
      {models.map((each) => (
        <option key={each} value={each}>
          {each}
        </option>
      ))}
      {provider?.open_models && <option value={BY_NAME}>Another one, by name …</option>}
    </SelectField>
  );
}

/** The models that are called in place of one that fails. */
function FallbackField(props: FieldProps) {
  return <ListControl {...props} controls={MODEL_CONTROLS} />;
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
  /** What it means that none is chosen. */
  none?: string;
};

/** A name out of a list, also one that is not in it; without a list any text. */
function NameField(props: NameFieldProps) {
  const { field, label, value, onChange, error, tag, names, hint, none = "Choose one" } = props;
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
      <option value="">{none}</option>
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
