import { useState } from "react";
import { useNodeTypes } from "@/api/queries";
import type { NodeTypeResponse, PortResponse } from "@/api/types";
import { TypeIcon } from "@/canvas/TypeIcon";
import { writeJson } from "@/json";
import { ErrorNote } from "@/screens/ErrorNote";
import { FilterField } from "@/screens/settings/FilterField";
import styles from "@/screens/settings/SettingsScreen.module.css";
import { Icon } from "@/ui/icons";
import { Skeleton } from "@/ui/Skeleton";
import { type JsonSchema, schemaFields, schemaText } from "@/ui/schema";
import { Tag } from "@/ui/Tag";

/** The node types: the purpose, the ports and the fields of each. */
export function NodeTypeList() {
  const types = useNodeTypes();
  const [filter, setFilter] = useState("");
  if (types.error) return <ErrorNote error={types.error} />;
  if (!types.data) return <Skeleton lines={9} label="The node types are being loaded" />;
  const all = types.data.node_types;
  const wanted = filter.trim().toLowerCase();
  const shown = all.filter((type) => searchText(type).includes(wanted));
  return (
    <>
      <FilterField
        label="Search node types"
        value={filter}
        onChange={setFilter}
        shown={shown.length}
        of={all.length}
      />
      <ul className={styles.rows}>
        {shown.map((type) => (
          <li key={type.node_type}>
            <NodeType type={type} />
          </li>
        ))}
      </ul>
    </>
  );
}

function searchText({ node_type, summary, purpose, schema }: NodeTypeResponse): string {
  const fields = schemaFields(schema as JsonSchema).map(({ name, label }) => `${name} ${label}`);
  return `${node_type} ${summary} ${purpose} ${fields.join(" ")}`.toLowerCase();
}

const EFFECTS = {
  none: null,
  read: "reads from outside",
  write: "changes something outside",
  once: "changes something outside, once",
} as const;

function NodeType({ type }: { type: NodeTypeResponse }) {
  const effect = EFFECTS[type.effect];
  const [isOpen, setOpen] = useState(false);
  return (
    <details className={styles.type} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <TypeIcon type={type.node_type} />
        <span className={styles.grow}>
          <b>{type.node_type}</b>
          <span className={styles.purpose}>{type.summary}</span>
        </span>
        {effect && <Tag>{effect}</Tag>}
        <Icon name="down" small />
      </summary>
      {isOpen && (
        <div className={styles.about}>
          {type.purpose !== type.summary && <p>{type.purpose}</p>}
          <Ports title="Inputs" ports={type.inputs} />
          <Ports title="Outputs" ports={type.outputs} />
          <Fields type={type} />
        </div>
      )}
    </details>
  );
}

/** A port that takes flow and link edges is listed once for each. */
function channelsByName(ports: readonly PortResponse[]): Map<string, PortResponse[]> {
  const byName = new Map<string, PortResponse[]>();
  for (const port of ports) byName.set(port.name, [...(byName.get(port.name) ?? []), port]);
  return byName;
}

function Ports({ title, ports }: { title: string; ports: readonly PortResponse[] }) {
  if (ports.length === 0) return null;
  return (
    <section aria-label={title}>
      <h3 className={styles.part}>{title}</h3>
      <ul className={styles.models}>
        {[...channelsByName(ports)].map(([name, [port, ...others]]) => (
          <li key={name}>
            <Tag>
              {name}:{" "}
              {[port?.type, schemaText(port?.schema as JsonSchema)].filter(Boolean).join(" ")}
              {others.length > 0 ? ", flow or link" : port?.channel === "link" && ", link"}
              {port?.required && ", required"}
              {port?.multiple && ", several"}
            </Tag>
          </li>
        ))}
      </ul>
    </section>
  );
}

function inShort(value: unknown): string {
  return typeof value === "string" ? value || "empty" : writeJson(value);
}

function Fields({ type }: { type: NodeTypeResponse }) {
  const fields = schemaFields(type.schema as JsonSchema);
  if (fields.length === 0) return <p className={styles.faint}>It has no fields.</p>;
  return (
    <section aria-label="Fields">
      <h3 className={styles.part}>Fields</h3>
      <dl className={styles.fields}>
        {fields.map((field) => (
          <div key={field.name}>
            <dt>
              <code>{field.name}</code>
            </dt>
            <dd>
              {field.description || field.label}
              <span className={styles.faint}>
                {" "}
                {field.required ? "Required." : ""}
                {field.choices.length > 0 && ` One of ${field.choices.map(inShort).join(", ")}.`}
                {!field.required && field.default != null && ` Else ${inShort(field.default)}.`}
              </span>
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
