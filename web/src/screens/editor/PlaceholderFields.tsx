import { useNodeTypes } from "@/api/queries";
import type { GraphDocument, NodeDocument } from "@/api/types";
import { writeJson } from "@/json";
import { SelectField, TextArea, TextField } from "@/ui/Field";
import { PLACEHOLDER, replaceType } from "./graphEdits";

type PlaceholderFieldsProps = {
  graph: GraphDocument;
  node: NodeDocument;
  onChange: (graph: GraphDocument) => void;
};

/** What a step was in the system that it came from, to be read, and what takes its place. */
export function PlaceholderFields({ graph, node, onChange }: PlaceholderFieldsProps) {
  const types = useNodeTypes().data?.node_types ?? [];
  const { kind, name, parameters, code } = node.data ?? {};
  const replace = (chosen: string) => {
    const type = types.find((each) => each.node_type === chosen);
    if (type) onChange(replaceType(graph, node.id, type));
  };
  return (
    <>
      <SelectField
        label="Replace with…"
        hint="Id, name and place stay, and the edges that fit. Undo brings it back."
        value=""
        onChange={(event) => replace(event.target.value)}
      >
        <option value="">Choose a type</option>
        {types
          .filter((type) => type.node_type !== PLACEHOLDER)
          .map((type) => (
            <option key={type.node_type} value={type.node_type}>
              {type.node_type}: {type.summary}
            </option>
          ))}
      </SelectField>
      <TextField label="It was" value={textOf(kind)} readOnly />
      {textOf(name) && <TextField label="Its name there" value={textOf(name)} readOnly />}
      <TextArea
        label="Its settings there"
        value={writeJson(parameters ?? {}, 2)}
        rows={8}
        spellCheck={false}
        readOnly
      />
      {textOf(code) && (
        <TextArea label="Its code" value={textOf(code)} rows={8} spellCheck={false} readOnly />
      )}
    </>
  );
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
