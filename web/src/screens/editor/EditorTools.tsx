import { useState } from "react";
import type { GraphDocument } from "@/api/types";
import { Button } from "@/ui/Button";
import { TextField } from "@/ui/Field";
import { IconButton } from "@/ui/IconButton";
import { Popover } from "@/ui/Popover";
import { useShortcuts } from "@/ui/shortcuts";
import { AddStep, type AddStepProps } from "./AddStep";
import styles from "./EditorTools.module.css";

type EditorToolsProps = {
  graph: GraphDocument;
  adding: AddStepProps;
  canUndo: boolean;
  canRedo: boolean;
  onUndo: () => void;
  onRedo: () => void;
  onTidyUp: () => void;
  /** Leads to a step. */
  onFind: (id: string) => void;
};

/** The tools of the editor, in its top left corner. */
export function EditorTools(props: EditorToolsProps) {
  return (
    <div className={styles.tools} role="toolbar" aria-label="Editor">
      <AddStep {...props.adding} />
      <span className={styles.line} />
      <IconButton
        icon="undo"
        label="Undo"
        keys="Ctrl Z"
        small
        disabled={!props.canUndo}
        onClick={props.onUndo}
      />
      <IconButton
        icon="redo"
        label="Redo"
        keys="Shift Ctrl Z"
        small
        disabled={!props.canRedo}
        onClick={props.onRedo}
      />
      <span className={styles.line} />
      <FindStep graph={props.graph} onFind={props.onFind} />
      <Button small kind="quiet" onClick={props.onTidyUp}>
        Tidy up
      </Button>
    </div>
  );
}

function FindStep({ graph, onFind }: Pick<EditorToolsProps, "graph" | "onFind">) {
  const [isOpen, setOpen] = useState(false);
  const [text, setText] = useState("");
  useShortcuts("The editor", [{ keys: "mod+f", does: "Find a step", run: () => setOpen(true) }]);
  const words = text.toLowerCase();
  const found = graph.nodes.filter((node) =>
    `${node.name ?? ""} ${node.id} ${node.description ?? ""}`.toLowerCase().includes(words),
  );
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
