import { useState } from "react";
import type { GraphDocument, NodeDocument } from "@/api/types";
import { Button } from "@/ui/Button";
import { TextField } from "@/ui/Field";
import { Popover } from "@/ui/Popover";
import { useShortcuts } from "@/ui/shortcuts";
import styles from "./FindStep.module.css";

type FindStepProps = {
  graph: GraphDocument;
  /** Leads to a step. */
  onFind: (id: string) => void;
};

/** Finds a step by its name, id or task: a browser finds only cards that are drawn. */
export function FindStep({ graph, onFind }: FindStepProps) {
  const [isOpen, setOpen] = useState(false);
  const [text, setText] = useState("");
  useShortcuts("The steps", [{ keys: "mod+f", does: "Find a step", run: () => setOpen(true) }]);
  const found = isOpen ? stepsWith(text.toLowerCase(), graph) : [];
  const choose = (id: string | undefined) => {
    if (!id) return;
    onFind(id);
    setOpen(false);
    setText("");
  };
  return (
    <Popover
      open={isOpen}
      onOpenChange={setOpen}
      label="Find a step"
      trigger={
        <Button small kind="quiet" icon="search" aria-label="Find a step">
          Find
        </Button>
      }
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          choose(found[0]?.id);
        }}
      >
        <TextField
          label="Name, id or task of a step"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <ul className={styles.found}>
          {found.slice(0, 8).map((node) => (
            <li key={node.id}>
              <Button small kind="quiet" onClick={() => choose(node.id)}>
                {node.name || node.id}
              </Button>
            </li>
          ))}
        </ul>
      </form>
    </Popover>
  );
}

function stepsWith(words: string, { nodes }: GraphDocument): NodeDocument[] {
  return nodes.filter(({ name, id, description }) =>
    `${name ?? ""} ${id} ${description ?? ""}`.toLowerCase().includes(words),
  );
}
