import { placeAmongSiblings, type TreeMessage } from "@/stream/chat/tree";
import { IconButton } from "@/ui/IconButton";
import styles from "./BranchSwitch.module.css";

type BranchSwitchProps = {
  message: TreeMessage;
  /** What the siblings are: "version", "answer". */
  of: string;
  onShow: (messageId: string) => void;
};

/** Which of several siblings is shown, and the arrows to the others. */
export function BranchSwitch({ message, of, onShow }: BranchSwitchProps) {
  const { place, count, previous, next } = placeAmongSiblings(message);
  if (count < 2) return null;
  return (
    <fieldset className={styles.switch} aria-label={`${of} ${place} of ${count}`}>
      <IconButton
        small
        icon="left"
        label={`Previous ${of}`}
        aria-disabled={previous === null}
        onClick={() => previous && onShow(previous)}
      />
      <b>
        {place}/{count}
      </b>
      <IconButton
        small
        icon="right"
        label={`Next ${of}`}
        aria-disabled={next === null}
        onClick={() => next && onShow(next)}
      />
    </fieldset>
  );
}
