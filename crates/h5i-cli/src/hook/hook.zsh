# Reports what this shell runs to the box's host, by small files in its spool: each line that is
# typed, or the command of `zsh -c`. It starts no program.
#
# In ~/.zshrc of a box; for `zsh -c` in ~/.zshenv:
#   . /etc/h5i/hook.zsh

if [[ -d /run/h5i/spool && -z ${__h5i_number-} ]]; then
    typeset -gi __h5i_number=0
    typeset -g __h5i_form=

    # A command begins: $1.
    __h5i_begin() {
        emulate -L zsh
        local -a words=(${(z)1})
        local word=${words[1]-}
        [[ $word == *[\$\`\"\'\\=*?\[\{\~\(]* ]] && word=
        (( ++__h5i_number ))
        # One program, if nothing in it is an operator.
        __h5i_form=program
        local part
        for part in $words; do
            case $part in
            (*[';|&()`']*|'{'|'}'|*$'\n'*) __h5i_form=other ;;
            esac
        done
        { {
            printf 'h5i-command 1\nshell %s\nnumber %s\nprogram %s\n' $$ $__h5i_number "$word"
            if [[ -n $word && -z ${aliases[$word]+x}${functions[$word]+x}${builtins[$word]+x} ]] &&
                (( ! ${reswords[(Ie)$word]} )) && [[ -n ${commands[$word]-} || -x $word ]]; then
                printf 'kind command\n'
            fi
            printf '\n%s' "$1"
        } >| /run/h5i/spool/$$-$__h5i_number-b } 2>/dev/null
    }

    __h5i_end() {
        { printf 'h5i-command 1\nshell %s\nnumber %s\nstatus %s\nform %s\n' \
            $$ $__h5i_number $1 $2 >| /run/h5i/spool/$$-$__h5i_number-e } 2>/dev/null
    }

    if [[ -o interactive ]]; then
        __h5i_preexec() { __h5i_begin "$1" }
        __h5i_precmd() {
            local st=$? form=$__h5i_form
            if [[ -n $form ]]; then
                # With a job in the background, what starts and ends need not be this command's.
                [[ -z ${!-} || $! == 0 ]] || form=other
                __h5i_end $st $form
                __h5i_form=
            fi
            return $st
        }
        typeset -ga preexec_functions precmd_functions
        preexec_functions+=(__h5i_preexec)
        precmd_functions=(__h5i_precmd $precmd_functions)
    elif [[ -n ${ZSH_EXECUTION_STRING-} && -z ${H5I_REPORTED-} ]]; then
        export H5I_REPORTED=$$
        __h5i_exit() { __h5i_end $? shell }
        typeset -ga zshexit_functions
        zshexit_functions+=(__h5i_exit)
        __h5i_begin "$ZSH_EXECUTION_STRING"
    fi
fi
