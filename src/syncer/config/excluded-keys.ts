/** Labels and annotations that a configuration leaves out of copies. What is part of the translation cannot be left out: it would be there, or act,
 * all the same. */

import { keyMatcher } from '../../kube/names.ts';
import { BOOKKEEPING_ANNOTATIONS } from '../translate/bookkeeping.ts';
import { CONTROLLED_BY, OWN_LABELS } from '../translate/labels.ts';
import { keyPattern } from './kube-fields.ts';

/** Labels of slices, which say whose addresses they are and which program writes them. */
const SLICE_LABELS = ['endpointslice.kubernetes.io/managed-by', 'kubernetes.io/service-name'];
/** As a label and as an annotation. */
/** What labels with a meaning of their own become on the host. */
const REWRITTEN_LABEL = String.raw`^vcluster\.loft\.sh/label-.+-x-[0-9a-f]{10}$`;

/** Keys of labels, or PREFIX/* for all with a prefix. */
export const excludableLabel = excludable('label', [...SLICE_LABELS, ...OWN_LABELS], REWRITTEN_LABEL);

/** Keys of annotations, or PREFIX/* for all with a prefix. */
export const excludableAnnotation = excludable('annotation', [...BOOKKEEPING_ANNOTATIONS, CONTROLLED_BY]);

function excludable(what: 'label' | 'annotation', translated: readonly string[], rewritten?: string) {
  const form = rewritten === undefined ? undefined : new RegExp(rewritten, 'u');
  const wildcards = translated.map((key) => `${key.slice(0, key.indexOf('/'))}/*`);
  const refused = [...new Set([...translated, ...wildcards])].toSorted();
  return keyPattern
    .superRefine((pattern, context) => {
      const isCovered = keyMatcher([pattern]);
      const covered = translated.filter(isCovered);
      if (translated.includes(pattern) || form?.test(pattern) === true)
        context.addIssue(
          `this ${what} is part of the translation of copies, so it cannot be excluded: remove it from the list`,
        );
      else if (covered.length > 0)
        context.addIssue(
          `this includes ${covered.join(', ')}, which the translation of copies needs: list the other keys one by one`,
        );
    })
    .meta({
      not: { anyOf: [{ enum: refused }, ...(rewritten === undefined ? [] : [{ pattern: rewritten }])] },
    });
}
