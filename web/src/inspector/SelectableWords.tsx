import { type ReactNode, useEffect, useRef, useState } from "react";
import styles from "./SelectableWords.module.css";

type SelectableWordsProps = {
  /** The text. */
  children: ReactNode;
  /** What can be done with the words that are selected in it; empty without a selection. */
  action: (words: string) => ReactNode;
};

/** A text with an action for the words that a reader selects in it; they are kept while the action is used. */
export function SelectableWords({ children, action }: SelectableWordsProps) {
  const box = useRef<HTMLDivElement>(null);
  const [words, setWords] = useState("");
  useEffect(() => {
    const read = () => {
      const selection = document.getSelection();
      const isInside = selection?.anchorNode && box.current?.contains(selection.anchorNode);
      if (isInside) setWords(selection.toString().trim());
    };
    document.addEventListener("selectionchange", read);
    return () => document.removeEventListener("selectionchange", read);
  }, []);
  return (
    <>
      <div ref={box}>{children}</div>
      <p className={styles.action}>{action(words)}</p>
    </>
  );
}
