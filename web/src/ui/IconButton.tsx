import type { ComponentProps } from "react";
import { classes } from "@/ui/classes";
import styles from "@/ui/IconButton.module.css";
import { Icon, type IconName } from "@/ui/icons";
import { Tooltip } from "@/ui/Tooltip";

type IconButtonProps = Omit<ComponentProps<"button">, "children" | "aria-label"> & {
  icon: IconName;
  /** The button's name, for screen readers and in its tooltip. */
  label: string;
  /** The keys that do the same, shown in the tooltip. */
  keys?: string;
  small?: boolean;
  /** With a border, as a plain button. */
  bordered?: boolean;
};

/** A button of one icon. */
export function IconButton({ icon, label, keys, small, bordered, ...rest }: IconButtonProps) {
  return (
    <Tooltip text={label} {...(keys && { keys })}>
      <button
        type="button"
        {...rest}
        aria-label={label}
        className={classes(
          styles.button,
          small && styles.small,
          bordered && styles.bordered,
          rest.className,
        )}
      >
        <Icon name={icon} small={small ?? false} />
      </button>
    </Tooltip>
  );
}
