import type { KeyboardEvent, PointerEvent } from "react";
import styles from "@/ui/Splitter.module.css";

type SplitterProps = {
  /** The name of the panel that it sizes. */
  label: string;
  /** The line between the panels. */
  orientation: "vertical" | "horizontal";
  /** The size of the panel after the line, in px. */
  size: number;
  smallest: number;
  largest: number;
  onChange: (size: number) => void;
};

/** How far an arrow key moves the line, in px. */
const STEP = 24;

/** A line between two panels that can be dragged, or moved with the arrow keys. */
export function Splitter({ label, orientation, size, smallest, largest, onChange }: SplitterProps) {
  const clamp = (wanted: number) => Math.round(Math.min(largest, Math.max(smallest, wanted)));
  const isVertical = orientation === "vertical";
  const drag = (event: PointerEvent<HTMLHRElement>) => {
    if (!event.currentTarget.hasPointerCapture(event.pointerId)) return;
    const moved = isVertical ? event.movementX : event.movementY;
    onChange(clamp(size - moved));
  };
  const move = (event: KeyboardEvent) => {
    const grow = isVertical ? "ArrowLeft" : "ArrowUp";
    const shrink = isVertical ? "ArrowRight" : "ArrowDown";
    if (event.key !== grow && event.key !== shrink) return;
    event.preventDefault();
    onChange(clamp(size + (event.key === grow ? STEP : -STEP)));
  };
  return (
    <hr
      className={styles[orientation]}
      tabIndex={0}
      aria-orientation={orientation}
      aria-label={label}
      aria-valuenow={size}
      aria-valuemin={smallest}
      aria-valuemax={largest}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={drag}
      onKeyDown={move}
    />
  );
}
