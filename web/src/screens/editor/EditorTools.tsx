import type { GraphDocument } from "@/api/types";
import { FindStep } from "@/canvas/FindStep";
import { Button } from "@/ui/Button";
import { IconButton } from "@/ui/IconButton";
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
