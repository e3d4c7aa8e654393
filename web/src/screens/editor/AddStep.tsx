import { useState } from "react";
import type { NodeTypeResponse } from "@/api/types";
import { TypeIcon } from "@/canvas/TypeIcon";
import { Button } from "@/ui/Button";
import { TextField } from "@/ui/Field";
import { Popover } from "@/ui/Popover";
import { useShortcuts } from "@/ui/shortcuts";
import styles from "./AddStep.module.css";

type AddStepProps = {
  types: readonly NodeTypeResponse[];
  onAdd: (type: NodeTypeResponse) => void;
};

/** A list of node types to choose from, filtered while one types. */
export function AddStep({ types, onAdd }: AddStepProps) {
  const [isOpen, setOpen] = useState(false);
  const [filter, setFilter] = useState("");
  useShortcuts("The editor", [{ keys: "n", does: "Add a step", run: () => setOpen(true) }]);
  const found = types.filter((type) => matches(type, filter));
  const add = (type: NodeTypeResponse | undefined) => {
    if (!type) return;
    onAdd(type);
    setOpen(false);
    setFilter("");
  };
  return (
    <Popover
      open={isOpen}
      onOpenChange={setOpen}
      label="Add a step"
      trigger={
        <Button small icon="add" keys="N">
          Add step
        </Button>
      }
    >
      <form
        className={styles.picker}
        onSubmit={(event) => {
          event.preventDefault();
          add(found[0]);
        }}
      >
        <TextField
          label="Find a type"
          hiddenLabel
          placeholder="Find a type"
          value={filter}
          onChange={(event) => setFilter(event.target.value)}
        />
        <ul>
          {found.map((type) => (
            <li key={type.node_type}>
              <button type="button" onClick={() => add(type)}>
                <TypeIcon type={type.node_type} />
                <b>{type.node_type}</b>
                <span title={type.summary}>{type.summary}</span>
              </button>
            </li>
          ))}
        </ul>
        {found.length === 0 && <p>No type fits. Settings lists all types.</p>}
      </form>
    </Popover>
  );
}

function matches(type: NodeTypeResponse, filter: string): boolean {
  const text = `${type.node_type} ${type.summary} ${type.purpose}`.toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
