import { type KeyboardEvent, useState } from "react";
import type { NodeTypeResponse } from "@/api/types";
import { TypeIcon } from "@/canvas/TypeIcon";
import { Button } from "@/ui/Button";
import { TextField } from "@/ui/Field";
import { Popover } from "@/ui/Popover";
import { useShortcuts } from "@/ui/shortcuts";
import styles from "./AddStep.module.css";
import { takesWire, type WireStart } from "./newStep";
import { rankTypes } from "./rankTypes";

/** A wire that was dropped where nothing is, at a point of the window. */
export type DroppedWire = { start: WireStart; at: { x: number; y: number } };

export type AddStepProps = {
  types: readonly NodeTypeResponse[];
  /** A wire that the new step is to be at the end of. */
  dropped: DroppedWire | null;
  onAdd: (type: NodeTypeResponse) => void;
  /** It was closed: a wire that was dropped ends nowhere. */
  onClose: () => void;
};

/** A list of node types to choose from, filtered while one types. */
export function AddStep({ types, dropped, onAdd, onClose }: AddStepProps) {
  const [isAsked, setAsked] = useState(false);
  const [filter, setFilter] = useState("");
  useShortcuts("The editor", [{ keys: "n", does: "Add a step", run: () => setAsked(true) }]);
  const offered = dropped ? types.filter((type) => takesWire(type, dropped.start)) : types;
  const groups = rankTypes(offered, filter);
  const setOpen = (isOpen: boolean) => {
    setAsked(isOpen);
    if (isOpen) return;
    onClose();
    setFilter("");
  };
  const add = (type: NodeTypeResponse | undefined) => {
    if (!type) return;
    onAdd(type);
    setOpen(false);
  };
  return (
    <Popover
      open={isAsked || dropped !== null}
      onOpenChange={setOpen}
      at={dropped?.at}
      label="Add a step"
      trigger={
        <Button small icon="add" keys="N">
          Add step
        </Button>
      }
    >
      <form
        className={styles.picker}
        onKeyDown={moveFocus}
        onSubmit={(event) => {
          event.preventDefault();
          add(groups[0]?.types[0]);
        }}
      >
        <TextField
          label="Find a type"
          hiddenLabel
          placeholder="Find a type"
          value={filter}
          onChange={(event) => setFilter(event.target.value)}
        />
        <div className={styles.groups}>
          {groups.map((group) => (
            <section key={group.label} aria-label={group.label}>
              <h3>{group.label}</h3>
              <ul>
                {group.types.map((type) => (
                  <li key={type.node_type}>
                    <button type="button" onClick={() => add(type)}>
                      <TypeIcon type={type.node_type} />
                      <b>{type.node_type}</b>
                      <span title={type.summary}>{type.summary}</span>
                    </button>
                  </li>
                ))}
              </ul>
            </section>
          ))}
        </div>
        {groups.length === 0 && <p>No type fits. Settings lists all types.</p>}
      </form>
    </Popover>
  );
}

/** Moves between the field and the types with the arrow keys. */
function moveFocus(event: KeyboardEvent<HTMLFormElement>): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const stops = [...event.currentTarget.querySelectorAll<HTMLElement>("input, li button")];
  const at = stops.indexOf(document.activeElement as HTMLElement);
  stops[Math.min(Math.max(at + step, 0), stops.length - 1)]?.focus();
}
